"""Two faults that hid in shared state: names beside dynamic symbols, and comments of a block's own statements."""

import pytest

import pypto.language as pl

ROWS = pl.dynamic("ROWS")


def test_a_name_is_carried_through_a_loop_beside_a_dynamic_symbol():
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        x: pl.Tensor[[ROWS, 64], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]
    ) -> pl.Tensor[[ROWS, 64], pl.FP32]:
        acc = pl.load(x, [0, 0], [16, 64])
        count: pl.Scalar[pl.INDEX] = 0
        for _ in pl.range(4):
            acc = pl.add(acc, 1.0)
            count = count + 1
        return pl.store(acc, [count, 0], out)

    first_acc, first_count, loop, _ = kernel.body.stmts
    again_acc, again_count = loop.body.stmts
    assert again_acc.var is first_acc.var
    assert again_count.var is first_count.var


def test_a_comment_on_a_directive_goes_to_the_next_statement_only():
    @pl.function(type=pl.FunctionType.Orchestration)
    def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = x + 1.0
            pl.static_assert(True)  # checked while reading
            out[:] = y
        return out

    scope = kernel.body.stmts[0]
    assert list(scope.leading_comments) == []
    assert list(scope.body.stmts[1].leading_comments) == ["checked while reading"]


def test_the_end_of_a_block_leaves_the_comments_of_later_blocks_alone(recwarn):
    @pl.function(type=pl.FunctionType.Orchestration)
    def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        y = pl.create_tensor([16, 64], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = x + 1.0
        with pl.at(level=pl.Level.CORE_GROUP):
            # about the output
            out[:] = y + 1.0
        return out

    assert list(kernel.body.stmts[2].body.leading_comments) == ["about the output"]
    assert not recwarn.list


def test_comments_at_the_end_of_a_block_are_dropped_with_a_warning():
    with pytest.warns(
        UserWarning, match=r"Dropped 2 tail-of-block comment\(s\): line \d+: 'first', line \d+: 'second'"
    ):

        @pl.function(type=pl.FunctionType.Orchestration)
        def kernel(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = x + 1.0
                # first

                # second
            # about the return
            return out

    assert list(kernel.body.stmts[1].leading_comments) == ["about the return"]
