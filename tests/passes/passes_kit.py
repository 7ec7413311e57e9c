"""Programs and passes that several tests of the framework share."""

import pypto.language as pl
from pypto import ir, passes


@pl.program
class Counting:
    """Two functions that the passes of the front half change."""

    @pl.function
    def count(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        m = n
        for i in pl.range(4):
            m = m + n * i
        return m

    @pl.function
    def same(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        return n


def in_ssa_form() -> ir.Program:
    """``Counting`` after ConvertToSSA."""
    return passes.convert_to_ssa()(Counting)


def leaking_use(program: ir.Program) -> ir.Program:
    """``count`` with a use of a loop's variable behind the loop: what a careless rename of a written value leaves."""
    function = program.get_function("count")
    loop = next(s for s in ir.flatten_to_stmts(function.body) if isinstance(s, ir.ForStmt))
    inside = next(s for s in ir.flatten_to_stmts(loop.body) if isinstance(s, ir.AssignStmt))
    stmts = [
        s.replace(value=type(s.value)([inside.var])) if isinstance(s, ir.ReturnStmt) else s
        for s in ir.flatten_to_stmts(function.body)
    ]
    broken = function.replace(body=ir.SeqStmts(stmts))
    return program.with_functions([broken if f is function else f for f in program.functions.values()])


def pipeline(*steps: passes.Pass) -> passes.PassPipeline:
    """A pipeline of these passes."""
    made = passes.PassPipeline()
    for step in steps:
        made.add_pass(step)
    return made
