"""The catalogue against a frozen copy: names, operands, keywords, effects and memory of every op.

The copy was checked against the specification. A change that is wanted is made in ``catalogue.tsv`` as well.
"""

import csv
from pathlib import Path

import pytest

import pypto.ops  # noqa: F401  (registers the catalogue)
from pypto import ir
from pypto.ops.definition import REQUIRED
from pypto.ops.registry import REGISTRY

with (Path(__file__).parent / "catalogue.tsv").open(encoding="utf-8") as file:
    FROZEN = {row["op"]: row for row in csv.DictReader(file, delimiter="\t")}


def described(name):
    """The row of an op as it is registered."""
    definition = REGISTRY[name]
    spec = ir.get_op_memory_spec(name)
    channel = ir.get_op_write_channel(name)
    effects = [
        f"{o.name}={ir.get_op_arg_effect(name, i).name}"
        for i, o in enumerate(definition.operands)
        if ir.op_has_declared_arg_effect(name, i)
    ]
    output = None if spec is None else spec["output_memory"]
    inputs = [] if spec is None else [",".join(m.name for m in spaces) for spaces in spec["input_constraints"]]
    return {
        "op": name,
        "operands": " ".join(o.name + ("?" if o.optional else "") for o in definition.operands),
        "kwargs": " ".join(
            f"{key}:{kind.__name__}" + ("!" if default is REQUIRED else "")
            for key, (kind, default) in definition.kwargs.items()
        ),
        "effects": " ".join(effects),
        "channel": "" if channel is None else channel.name,
        "memory": "" if spec is None else f"{'|'.join(inputs)}->{getattr(output, 'name', output)}",
    }


def test_the_ops_are_those_of_the_catalogue():
    assert len(FROZEN) == 312
    assert set(REGISTRY) == set(FROZEN)


@pytest.mark.parametrize("name", sorted(FROZEN))
def test_an_op_is_as_in_the_catalogue(name):
    assert described(name) == FROZEN[name]
    assert ir.is_op_registered(name) and ir.get_op(name).name == name
    keys = [k.partition(":")[0] for k in FROZEN[name]["kwargs"].split()]
    assert list(ir.get_op(name).get_attr_keys()) == keys and all(ir.get_op(name).has_attr(k) for k in keys)


def test_unknown_ops():
    assert not ir.is_op_registered("tensor.nope")
    assert ir.get_op_memory_spec("tensor.nope") is None
    for query in (ir.get_op, ir.op_has_declared_arg_effects, ir.get_op_write_channel):
        with pytest.raises(ValueError, match="not found in registry"):
            query("tensor.nope")
    with pytest.raises(ValueError, match="GlobalVar"):
        ir.create_op_call("nope", [], {}, ir.Span.unknown())
    assert ir.get_op_arg_effect("tile.store", 99) is ir.ArgEffect.Read
