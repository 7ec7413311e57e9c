"""Kernel functions: signatures that host code can launch, and bodies on tiles."""

from __future__ import annotations

from dataclasses import dataclass

from .body import KERNEL, Budget
from .choices import Choices
from .env import F32, FLAGS, FLOAT, I32, INDEX, ROWS, TALL, Root, Ty, Value
from .statements import Statements


@dataclass(frozen=True)
class Param:
    """``direction``: In, Out or InOut."""

    name: str
    type: Ty
    direction: str = "In"
    limit: int | None = None

    def __str__(self) -> str:
        kind = str(self.type)
        return f"{self.name}: {kind if self.direction == 'In' else f'pl.{self.direction}[{kind}]'}"


@dataclass(frozen=True)
class Callee:
    """A function that host code calls. ``results``: indices of the parameters that it returns; ``scalars``: how many
    numbers it returns instead. ``whole``: parameters that it writes in every element. ``blocks``: how many blocks a
    launch must have, 0 for a plain one. ``disjoint``: launches for different rows touch nothing in common."""

    name: str
    params: tuple[Param, ...]
    results: tuple[int, ...]
    whole: frozenset[int]
    text: str
    blocks: int = 0
    inline: bool = False
    scalars: int = 0
    disjoint: bool = False


def signature(name: str, params: tuple[Param, ...], results: tuple[Ty, ...], kind: str) -> list[str]:
    """The first lines of a method."""
    shown = ", ".join(["self", *map(str, params)])
    if len(results) > 1:
        returned = f" -> tuple[{', '.join(map(str, results))}]"
    else:
        returned = f" -> {results[0]}" if results else ""
    return [f"    @pl.function(type=pl.FunctionType.{kind})", f"    def {name}({shown}){returned}:"]


def enter_params(body: Statements, params: tuple[Param, ...]) -> None:
    """The names that a body begins with."""
    for param in params:
        roots = frozenset((Root(0, param.direction == "In"),)) if param.type.shaped else frozenset()
        body.env.bind(
            param.name,
            Value(param.type, roots, param.direction != "In", param.direction != "Out", param.limit),
        )


def kernel(g: Choices, number: int, statements: int, ragged: int | None = None) -> Callee:
    """A kernel that the host may call or submit: one or two outputs, written in whole or in bands of rows. ``ragged``: see
    :class:`.body.Body`."""
    name = f"k{number}"
    shape = g.weighted(((5, "plain"), (3, "update"), (3, "two"), (2, "band"), (2, "blocks"), (2, "ints")))
    ins = [Param("x", F32)]
    if g.chance(40):
        ins.append(Param("y", g.pick((F32, TALL, I32))))
    if g.chance(20):
        ins.append(Param("flags", FLAGS))
    if g.chance(50):
        ins.append(Param("n", INDEX, limit=4))
    if g.chance(30):
        ins.append(Param("s", FLOAT))
    outs = {
        "plain": [Param("o", F32, "Out")],
        "update": [Param("o", F32, "InOut")],
        "two": [Param("o", F32, g.pick(("Out", "InOut"))), Param("o2", F32, "Out")],
        "band": [Param("row", INDEX, limit=ROWS + 1), Param("o", TALL, g.pick(("Out", "InOut")))],
        "blocks": [Param("o", TALL, "Out")],
        "ints": [Param("o", I32, "Out")],
    }[shape]
    params = tuple([*outs, *ins] if g.chance(15) else [*ins, *outs])
    body = Statements(g, KERNEL, Budget(statements))
    body.ragged = body.ragged if ragged is None else ragged
    enter_params(body, params)
    body.pinned |= {param.name for param in outs if param.type.shaped}
    if shape == "blocks":
        body.put("block = pl.tile.get_block_idx()")
        body.assign("block", Value(INDEX, limit=2))
        body.protected |= {"block", "o"}  # blocks write nothing but their own rows
        g.saw("kernel that reads its block index")
    body.protected.add("row")  # stays in range
    disjoint = shape == "band" and outs[-1].direction == "Out"
    if disjoint:
        body.protected.add("o")
    body.statements(0, 4)
    body.protected.clear()
    for param in outs:
        if param.type.shaped:
            row = {"band": "row", "blocks": "block * 8"}.get(shape, "0")
            body.env.bind(param.name, Value(param.type, frozenset((Root(0),)), True, param.direction != "Out"))
            body.store_to(param.name, row)
    written = [i for i, p in enumerate(params) if p.direction != "In"]
    results = tuple(reversed(written)) if g.chance(40) else tuple(written)
    if len(written) > 1 and results[0] != written[0]:
        g.saw("results in another order")
    body.put(f"return {', '.join(params[i].name for i in results)}")
    whole = frozenset(i for i in written if shape not in ("band",))
    head = signature(name, params, tuple(params[i].type for i in results), "InCore")
    text = "\n".join([*head, *body.lines])
    return Callee(name, params, results, whole, text, 2 if shape == "blocks" else 0, disjoint=disjoint)
