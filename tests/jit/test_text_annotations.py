"""Modules whose annotations Python does not evaluate."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl

M = pl.dynamic("M")
ROWS = 16


@pl.jit.incore
def copy(x: pl.Tensor[[M, 64], pl.FP32], y: pl.Out[pl.Tensor[[M, 64], pl.FP32]], k: pl.FP32):
    y = pl.store(pl.add(pl.load(x, [0, 0], [ROWS, 64]), k), [0, 0], y)
    return y


@pl.jit
def entry(x: pl.Tensor, y: pl.Out[pl.Tensor], k: pl.INDEX = 3) -> pl.Tensor[[M, 64], pl.FP32]:
    y = copy(x, y, k)
    return y


def test_module_names(text_of, ones):
    text = text_of(entry.specialize(ones(32, 64), ones(32, 64)))
    assert "def entry(self, x: pl.Tensor[[M, 64], pl.FP32], y: pl.Out[pl.Tensor[[M, 64], pl.FP32]]" in text
    assert "pl.tile.adds(pl.tile.load(x, [0, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec), 3.0)" in text


@pytest.mark.parametrize("with_brackets", [False, True])
def test_names_of_the_enclosing_function(with_brackets, ones):
    rows = pl.dynamic("R")
    width = 64
    alias = pl.Tensor[[rows, width], pl.FP32]

    def local(x: alias, y: pl.Out[pl.Tensor[[rows, width], pl.FP32]], flag: pl.BOOL):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(0, x.shape[0], 16):
                y = pl.store(pl.load(x, [i, 0], [16, 64]), [i, 0], y)
        return y

    decorated = pl.jit()(local) if with_brackets else pl.jit(local)
    function = decorated.specialize(ones(32, 64), ones(32, 64), True)["local"]
    assert function.params[0].type.shape[0].name_hint == "R"
    with pytest.raises(TypeError, match=r"annotated \[R, 64\] FP32, got \(32, 32\) float32"):
        decorated.specialize(ones(32, 32), ones(32, 64), True)


def test_unknown_names_are_like_no_annotation(ones):
    def local(x: nowhere):  # noqa: F821
        return x

    function = pl.jit(local).specialize(np.ones((4, 4), np.float32))["local"]
    assert [e.value for e in function.params[0].type.shape] == [4, 4]
