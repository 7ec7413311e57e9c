"""Which function of a program a call runs."""

import pytest

import pypto.language as pl
from pypto.runtime.signature import entry_function

TWO = """
@pl.program
class Two:
    @pl.function(type=pl.FunctionType.Orchestration)
    def a_part(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        return n

    @pl.function(type=pl.FunctionType.Orchestration)
    def whole(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
        {body}
        return m
"""


@pytest.mark.parametrize(
    ("body", "entry"), [("m = self.a_part(n)", "whole"), ("m = n", "a_part")], ids=["calls", "independent"]
)
def test_of_several_orchestrations(body, entry):
    assert entry_function(pl.parse(TWO.format(body=body))).name == entry
