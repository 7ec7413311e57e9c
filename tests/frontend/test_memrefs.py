"""``pl.MemRef(...)`` in annotations: resolved, legacy and declared forms (language section 4.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import ParserTypeError

from .dsl import HEAD, check_error, kernel, load_file, parse, round_trip

X = "x: pl.Tensor[[64, 128], pl.FP32], n: pl.Scalar[pl.INDEX]"
LOAD = "pl.load(x, [0, 0], [64, 128])"


def tile(memref: str) -> str:
    return f"pl.Tile[[64, 128], pl.FP32, {memref}, pl.Mem.Vec]"


def local_refs(*memrefs: str, before: str = "", params: str = X) -> list[Any]:
    """The memrefs of one annotated load each."""
    body = "\n".join(f"t{i}: {tile(ref)} = {LOAD}" for i, ref in enumerate(memrefs))
    text = kernel(f"{body}\nreturn", params)
    node = parse(text.replace("@pl.f", before + "@pl.f", 1) if before else text)
    round_trip(node)
    return [s.var.type.memref for s in node.body.stmts[:-1]]


def test_resolved_references() -> None:
    first, second, third, fourth = local_refs(
        'pl.MemRef("buf", 0, 32768)',
        "pl.MemRef(buf, 64, 32768)",
        "pl.MemRef(other, n * 4, 0)",
        'pl.MemRef("buf", 0, 32768)',
    )
    assert first.base_.name_hint == "buf" and isinstance(first.base_.type, ir.PtrType)
    assert second.base_ is first.base_ is fourth.base_ and third.base_ is not first.base_
    assert second.byte_offset_.value == 64 and second.size_ == 32768
    assert isinstance(third.byte_offset_, ir.Mul)
    assert not first.is_pinned_


def test_slots_of_a_resolved_reference() -> None:
    (ref,) = local_refs('pl.MemRef("buf", 0, 32768, slots=2)[n % 2]')
    assert ref.slot_count_ == 2 and isinstance(ref.slot_index_, ir.FloorMod)


def test_bases_are_shared_within_a_function_only() -> None:
    text = HEAD + "@pl.program\nclass P:\n"
    for name in "ab":
        text += (
            f"    @pl.function\n    def {name}(self, x: pl.Tensor[[4], pl.FP32, pl.MemRef('m', 0, 16)], "
            "y: pl.Tensor[[4], pl.FP32, pl.MemRef('m', 16, 16)]):\n        return\n"
        )
    node = parse(text)
    bases = [[p.type.memref.base_ for p in node.get_function(name).params] for name in "ab"]
    assert bases[0][0] is bases[0][1] and bases[1][0] is bases[1][1] and bases[0][0] is not bases[1][0]
    round_trip(node)


def test_a_dsl_pointer_is_the_base() -> None:
    text = kernel(
        f"buf: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 32768)\nt: {tile('pl.MemRef(buf, 0, 32768)')} = {LOAD}\nreturn", X
    )
    node = parse(text)
    assert node.body.stmts[1].var.type.memref.base_ is node.body.stmts[0].var


def test_legacy_forms() -> None:
    first, second, third = local_refs(
        "pl.MemRef(64, 32768, 3)", "pl.MemRef(pl.Mem.Vec, 128, 32768, 4)", "pl.MemRef(0, 32768, 3)"
    )
    assert first.byte_offset_.value == 64 and first.size_ == 32768
    assert second.byte_offset_.value == 128
    assert third.base_ is first.base_ and second.base_ is not first.base_


def test_inline_declarations() -> None:
    first, second, third = local_refs('pl.MemRef("acc")', 'pl.MemRef("acc")', 'pl.MemRef("ring", slots=3)[1]')
    assert first.is_pinned_ and first.byte_offset_.value == 0 and first.size_ == 0
    assert second.base_ is first.base_
    assert third.slot_count_ == 3 and third.slot_index_.value == 1


def test_declared_names_are_a_name_space_of_their_own() -> None:
    declared = tile('pl.MemRef("acc")')
    text = kernel(f"acc: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 32768)\nt: {declared} = {LOAD}\nreturn", X)
    node = parse(text)
    assert node.body.stmts[1].var.type.memref.base_ is not node.body.stmts[0].var
    (ref,) = local_refs('pl.MemRef("n")')
    assert isinstance(ref.base_.type, ir.PtrType)


def test_declarations_in_python() -> None:
    before = 'plain = pl.MemRef()\nring = pl.MemRef(slots=2)\nnamed = pl.MemRef("inner")\n'
    first, second, third, fourth, fifth = local_refs("plain", "ring[0]", "ring[n]", "named", "plain", before=before)
    assert [r.base_.name_hint for r in (first, second, third, fourth)] == ["plain", "ring", "ring", "inner"]
    assert first.base_ is fifth.base_ and second.base_ is third.base_
    assert second.slot_index_.value == 0 and isinstance(third.slot_index_, ir.Var)
    assert all(r.is_pinned_ for r in (first, second, third, fourth))


def test_declarations_in_a_signature(tmp_path: Path) -> None:
    text = HEAD + (
        "ring = pl.MemRef(slots=2)\n@pl.function(type=pl.FunctionType.InCore)\n"
        "def f(a: pl.Tile[[4, 8], pl.FP32, ring[1], pl.Mem.Vec], b: pl.Tile[[4, 8], pl.FP32, ring[0], pl.Mem.Vec],\n"
        "      c: pl.Tile[[4, 8], pl.FP32, pl.MemRef('own'), pl.Mem.Vec]):\n    return\n"
    )
    for prefix in ("", "from __future__ import annotations\n"):
        node = load_file(tmp_path, prefix + text)["f"]
        a, b, c = (p.type.memref for p in node.params)
        assert a.base_ is b.base_ and a.slot_index_.value == 1 and b.slot_index_.value == 0
        assert c.base_.name_hint == "own" and c.is_pinned_
        round_trip(node)


@pytest.mark.parametrize(
    ("memrefs", "phrase"),
    [
        (["one", "two"], "is also referenced as"),
        (['pl.MemRef("one")', "one"], "both resolve to the name 'one'"),
        (["one[0]"], "cannot be subscripted"),
        (['pl.MemRef("q")[0]'], "cannot be subscripted"),
        (['pl.MemRef("q", 0, 128)[0]'], "cannot be subscripted"),
        (["ring[2]"], "Slot index 2 is out of range"),
        (["ring[-1]"], "Slot index -1 is out of range"),
        (['pl.MemRef("q", slots=2)[5]'], "Slot index 5 is out of range"),
        (['pl.MemRef("q", slots=0)'], "must be a positive integer literal"),
        (['pl.MemRef("q", slots=True)'], "must be a positive integer literal"),
        (['pl.MemRef("q", slots=n)'], "must be a positive integer literal"),
        (['pl.MemRef("")'], "must be a non-empty string literal"),
        (["pl.MemRef(n)"], "must be a non-empty string literal"),
        (["pl.MemRef()"], "pl.MemRef requires 3 arguments"),
        (['pl.MemRef("q", 0)'], "pl.MemRef requires 3 arguments"),
        (['pl.MemRef("q", 1.5, 128)'], "byte_offset must be an index expression"),
        (['pl.MemRef("q", 0, -1)'], "MemRef size must be"),
        (['pl.MemRef("q", 0, n)'], "MemRef size must be"),
        (["pl.MemRef(pl.Mem.Nowhere, 0, 128, 1)"], "Unknown memory space"),
        (["ring[x]"], "must be an index expression"),
    ],
)
def test_bad_references(memrefs: list[str], phrase: str) -> None:
    before = "one = pl.MemRef()\ntwo = one\nring = pl.MemRef(slots=2)\n"
    body = "\n".join(f"t{i}: {tile(ref)} = {LOAD}" for i, ref in enumerate(memrefs))
    text = kernel(f"{body}\nreturn", X).replace("@pl.f", before + "@pl.f", 1)
    check_error(text, ParserTypeError, phrase, f"t{len(memrefs) - 1}: ")


def test_a_tile_memref_needs_a_memory_space() -> None:
    text = kernel(f't: pl.Tile[[64, 128], pl.FP32, pl.MemRef("a")] = {LOAD}\nreturn', X)
    check_error(text, ParserTypeError, "must also specify explicit memory space", "t: ")


def test_run_time_objects() -> None:
    assert pl.MemRef().is_pinned_ and pl.MemRef("n").name_hint == "n" and pl.MemRef(slots=4).slot_count_ == 4
    assert pl.MemRef("n", slots=2)[1].slot_index_.value == 1
