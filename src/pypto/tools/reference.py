"""Reference pages made from what the code states: ``docs/reference/ops.md`` and ``docs/errors.md``.

``python -m pypto.tools.reference`` writes both below the current directory (a checkout); ``--check`` writes nothing and
fails if a page is out of date.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..diag.catalogue import ENTRIES
from ..diag.catalogue.model import CodeInfo
from ..ir.dtype import DataType
from ..ir.enums import ArgEffect, CoreType, MemorySpace
from ..ops import REGISTRY
from ..ops.definition import DEFERRED, INHERIT, REQUIRED, UNSET, Alias, Category, OpDef, Operand
from ..ops.surface import NAMESPACES

# --- spellings --------------------------------------------------------------------------------------------------------

# Surface functions whose op has another name; every other one is named like its op.
_OPS_OF_FUNCTION = {
    "create_tensor": ("create",),
    "create_tile": ("create",),
    "arange": ("ci",),
    "mrgsort": ("mrgsort_format1", "mrgsort_format2"),
    "tensor.gather": ("gather", "gather_mask", "gather_compare"),
    "tensor.scatter": ("scatter", "scatter_mask"),
}

# Functions whose ``s`` form is a function of its own, not chosen by a scalar operand.
_NO_SCALAR_DISPATCH = frozenset({"sel", "rem"})

_SUGAR = {
    "tensor.read": "t[i, j]",
    "tile.read": "t[i, j]",
    "tensor.slice": "t[a:b, c:d]",
    "tile.slice": "t[a:b, c:d]",
    "tensor.assemble": "t[a:b, c:d] = s",
    "tile.assemble": "t[a:b, c:d] = s",
    "array.get_element": "a[i]",
    "array.update_element": "a[i] = v",
}


def _ops_of(namespace: str, name: str) -> list[str]:
    """The ops that a function of one namespace may build."""
    stems = _OPS_OF_FUNCTION.get(f"{namespace}.{name}") or _OPS_OF_FUNCTION.get(name) or (name.rstrip("_"),)
    found = [f"{namespace}.{stem}" for stem in stems if f"{namespace}.{stem}" in REGISTRY]
    if not found and namespace == "system":  # the pipe functions stand under `system`, their ops move tiles
        found = [f"tile.{stem}" for stem in stems if f"tile.{stem}" in REGISTRY]
    for op in list(found):
        with_scalar = REGISTRY.get(f"{op}s")
        if with_scalar is None or name in _NO_SCALAR_DISPATCH:
            continue
        if any(operand.kind == "scalar" for operand in with_scalar.operands):
            found.append(with_scalar.name)
    return found


def _claims(namespace: str, name: str, function: Callable[..., Any]) -> list[str]:
    """The ops that a user may reach through one function.

    ``pl`` and ``pld`` hold functions that dispatch over the levels, and promoted ones: the function of one level.
    """
    if namespace == "pl":
        levels = [n for n in NAMESPACES if n in _LEVELS and name in NAMESPACES[n]]
    elif namespace == "pld":
        levels = [n for n in NAMESPACES if n.startswith("pld.") and name in NAMESPACES[n]]
    else:
        levels = [namespace]
    own = [level for level in levels if NAMESPACES[level][name] is function]
    return [op for level in own or levels for op in _ops_of(level, name)]


_LEVELS = ("tensor", "tile", "system", "array", "prefetch")


def _functions() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Every function that users can call: its namespace, its name, itself."""
    for namespace, functions in NAMESPACES.items():
        for name, function in functions.items():
            if not name.startswith("_"):
                yield namespace, name, function


def spellings() -> dict[str, list[str]]:
    """Op name -> how users write it: ``pl.add(lhs, rhs)``, ``pl.tensor.add(lhs, rhs)``, and subscript forms."""
    written: dict[str, list[str]] = {name: [] for name in REGISTRY}
    for namespace, name, function in _functions():
        prefix = f"pl.{namespace}" if namespace in _LEVELS else namespace
        for op in _claims(namespace, name, function):
            written[op].append(f"{prefix}.{name}{_signature(function)}")
    for op, form in _SUGAR.items():
        written[op].append(form)
    return written


def unclaimed() -> list[str]:
    """Functions that no op claims: scalar helpers and parser forms. Tests keep this list short."""
    return [
        f"{namespace}.{name}" for namespace, name, function in _functions() if not _claims(namespace, name, function)
    ]


def _signature(function: Callable[..., Any]) -> str:
    shown = []
    starred = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        text = parameter.name
        if parameter.kind is parameter.VAR_POSITIONAL:
            text, starred = f"*{text}", True
        elif parameter.kind is parameter.VAR_KEYWORD:
            text = f"**{text}"
        if parameter.default is not parameter.empty:
            text += f"={_value(parameter.default)}"
        shown.append(text)
    return f"({', '.join(shown)})"


def _value(value: Any) -> str:
    if isinstance(value, DataType):
        return f"pl.{value.name}"
    if isinstance(value, enum.Enum):
        return f"pl.{type(value).__name__}.{value.name}"
    text = repr(value)
    return "..." if text.startswith("<") else text  # a marker for "not given"


# --- one op -----------------------------------------------------------------------------------------------------------

_KIND_WORDS = {
    "tensor": "tensor",
    "window": "tensor (plain or distributed)",
    "dist": "distributed tensor",
    "tile": "tile",
    "scalar": "scalar",
    "const": "constant",
    "tuple": "list of extents",
    "array": "array",
    "any": "any",
}


def _operand(operand: Operand) -> str:
    words = _KIND_WORDS.get(operand.kind, operand.kind)
    if operand.role not in ("data", "shape"):
        words += f", {operand.role}"
    return f"`{operand.name}` {words}" + (" (optional)" if operand.optional else "")


def _keyword(name: str, kind: Any, default: Any) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    text = f"{name}: {' or '.join(k.__name__ for k in kinds)}"
    if default is REQUIRED:
        return f"`{text}` (required)"
    return f"`{text}`" if default is UNSET else f"`{text} = {_value(default)}`"


def _spaces(spaces: Iterable[MemorySpace]) -> str:
    return " or ".join(space.name for space in spaces) or "any"


def _memory(definition: OpDef) -> str:
    given = ", ".join(_spaces(spaces) for spaces in definition.input_memory)
    result = definition.output_memory
    if isinstance(result, MemorySpace):
        made = result.name
    else:
        made = {None: "", INHERIT: "the space of the first tile", DEFERRED: "`target_memory`"}[result]
    if given and made:
        return f"{given} -> {made}"
    return f"takes {given}" if given else made


def _core(definition: OpDef) -> str:
    core = definition.core
    return core.name.lower() if isinstance(core, CoreType) else str(core).lower() if core is not None else ""


_EFFECT_WORDS = {
    ArgEffect.Read: "reads",
    ArgEffect.Write: "writes",
    ArgEffect.ReadWrite: "reads and writes",
}


def _effects(definition: OpDef) -> str:
    parts = []
    for index, rule in sorted(definition.effects.items()):
        name = definition.operands[index].name if index < len(definition.operands) else f"operand {index}"
        fixed = isinstance(rule, ArgEffect)
        words = _EFFECT_WORDS[definition.effect(index, {})]
        parts.append(f"{words} `{name}`" + ("" if fixed else " (by default; the keywords decide)"))
    if not parts and not definition.pure:
        return "acts beyond its operands"
    return "; ".join(parts)


def _result(definition: OpDef) -> str:
    notes = []
    if definition.alias is not Alias.FRESH and definition.alias_operand is not None:
        name = definition.operands[definition.alias_operand].name
        notes.append(f"is `{name}`, updated in place" if definition.alias is Alias.IS else f"a view of `{name}`")
    rule = inspect.getdoc(definition.infer)
    if rule:
        notes.append(rule.splitlines()[0])
    if definition.not_in_place:
        notes.append("must not share bytes with an operand")
    elif definition.no_alias:
        names = ", ".join(f"`{definition.operands[i].name}`" for i in definition.no_alias)
        notes.append(f"must not share bytes with {names}")
    return "; ".join(notes)


def _entry(definition: OpDef, written: list[str]) -> list[str]:
    facts = {
        "written": ", ".join(f"`{form}`" for form in written) or "by the compiler only",
        "operands": "; ".join(map(_operand, definition.operands)),
        "keywords": ", ".join(_keyword(name, kind, default) for name, (kind, default) in definition.kwargs.items()),
        "result": _result(definition),
        "memory": _memory(definition),
        "core": _core(definition),
        "effects": _effects(definition),
        "priority": definition.priority if definition.priority != "core" else "",
    }
    lines = [f"### `{definition.name}`", ""]
    if definition.doc:
        lines += [_escape(definition.doc), ""]
    return [*lines, *(f"* {key}: {text}" for key, text in facts.items() if text), ""]


def _code(text: str) -> str:
    """A code span, with a longer fence where the text has a backtick of its own."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _escape(text: str) -> str:
    return text.replace("*", "\\*").replace("<", "&lt;")


# --- pages ------------------------------------------------------------------------------------------------------------

_MADE = "<!-- Made by `python -m pypto.tools.reference`. Change the definitions, not this page. -->\n"


def _family(definition: OpDef) -> str:
    """The module that defines an op, below ``pypto.ops``: the family it belongs to."""
    return definition.infer.__module__.removeprefix("pypto.ops.").replace(".", " ")


def _family_title(name: str) -> str:
    text = (sys.modules[f"pypto.ops.{name.replace(' ', '.')}"].__doc__ or name).strip().splitlines()[0]
    return text.rstrip(".")


def families() -> Mapping[str, list[OpDef]]:
    """Family -> its ops, families by name and ops in the order of their definition."""
    groups: dict[str, list[OpDef]] = {}
    for definition in REGISTRY.values():
        if definition.category is not Category.TEST:
            groups.setdefault(_family(definition), []).append(definition)
    return dict(sorted(groups.items()))


_OPS_INTRODUCTION = (
    "`tensor.*` ops work on tensors in global memory and are lowered to tiles; `tile.*` ops work on on-chip tiles;",
    "`pld.*`, `builtin.*` and `dist.*` belong to programs on many ranks.",
    "Write `pl.<name>` where that spelling is listed: it picks the level from its operands. A keyword without a",
    "default may be left out unless it is marked required. Operands are only read unless *effects* says more. Ops",
    "marked `full` or `rare` are outside of what ordinary programs use.",
)


def ops_page() -> str:
    """The text of ``docs/reference/ops.md``."""
    groups = families()
    written = spellings()
    lines = [
        _MADE,
        "# Operators",
        "",
        f"{sum(map(len, groups.values()))} ops in {len(groups)} families.",
        *_OPS_INTRODUCTION,
        "",
    ]
    for name, definitions in groups.items():
        stems = dict.fromkeys(definition.name.partition(".")[2] for definition in definitions)
        lines.append(f"* [{name}](#{name.replace(' ', '-')}): {', '.join(stems)}")
    lines.append("")
    for name, definitions in groups.items():
        lines += [f"## {name}", "", _family_title(name) + ".", ""]
        for definition in definitions:
            lines += _entry(definition, written[definition.name])
    return "\n".join(lines).rstrip() + "\n"


_ERROR_SECTIONS = {
    "PT01": "General",
    "PT02": "Definitions and text entry points",
    "PT03": "Types and annotations",
    "PT04": "Names, expressions, subscripts",
    "PT05": "Calls and operators",
    "PT06": "Statements and control flow",
    "PT07": "Scopes",
    "PT08": "Tasks and directives",
    "PT09": "The compiler after the front end",
    "PT10": "Passes",
    "PT11": "Code generators",
}


def errors_page(entries: Iterable[CodeInfo] = ENTRIES) -> str:
    """The text of ``docs/errors.md``."""
    sections: dict[str, list[CodeInfo]] = {}
    for info in sorted(entries, key=lambda entry: entry.code):
        sections.setdefault(info.code[:4], []).append(info)
    lines = [
        _MADE,
        "# Errors",
        "",
        "Every error of the front end has a code that never changes its meaning. The message shows your own line with",
        "carets below the text that is meant, and a hint. An error without a closer kind has a code `PT01xx`.",
        "",
    ]
    for prefix, infos in sections.items():
        lines += [f"## {_ERROR_SECTIONS.get(prefix, prefix)} ({prefix}xx)", ""]
        for info in infos:
            lines += [
                f"### {info.code}: {_escape(info.title)}",
                "",
                f"`{info.exception}`. {_escape(info.explanation)}",
                "",
            ]
            if info.phrases:
                lines += ["Messages with: " + ", ".join(map(_code, info.phrases)) + ".", ""]
            lines += [f"**Fix.** {_escape(info.fix)}", ""]
    return "\n".join(lines).rstrip() + "\n"


PAGES: Mapping[str, Callable[[], str]] = {"docs/reference/ops.md": ops_page, "docs/errors.md": errors_page}


def main(arguments: list[str] | None = None) -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(prog="python -m pypto.tools.reference", description="Make the reference pages.")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(), help="the checkout (default: here)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is out of date")
    options = parser.parse_args(arguments)
    stale = 0
    for name, page in PAGES.items():
        path = options.root / name
        text = page()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        if options.check:
            print(f"{name} is out of date: run python -m pypto.tools.reference", file=sys.stderr)
            stale += 1
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {name}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
