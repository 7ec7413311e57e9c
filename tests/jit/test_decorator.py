"""``pl.jit`` and its kinds: what they accept, what a decorated function looks like."""

import inspect

import numpy as np
import pytest

import pypto.language as pl
from pypto.jit import JITFunction

KINDS = {
    "orchestration": pl.jit,
    "host": pl.jit.host,
    "incore": pl.jit.incore,
    "inline": pl.jit.inline,
    "opaque": pl.jit.opaque,
}


def sample(x: pl.Tensor[[4, 8], pl.FP32], k: pl.INDEX = 3):
    """A docstring."""
    return x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_brackets", [False, True])
def test_every_kind_gives_a_jit_function(kind, with_brackets):
    decorator = KINDS[kind]
    found = (decorator() if with_brackets else decorator)(sample)
    assert type(found) is JITFunction
    assert repr(found) == f"JITFunction('sample', func_type='{kind}')"


def test_metadata_of_the_function_is_kept():
    found = pl.jit(sample)
    assert (found.__name__, found.__qualname__, found.__module__) == ("sample", "sample", sample.__module__)
    assert found.__doc__ == "A docstring."
    assert found.__wrapped__ is sample
    assert found.__annotations__ == sample.__annotations__
    assert inspect.signature(found) == inspect.signature(sample)


def test_pl_offers_both_names():
    assert pl.JITFunction is JITFunction


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pl.jit(level=pl.Level.AIC), "@pl.jit does not accept a level= argument"),
        (lambda: pl.jit.inline(level=pl.Level.AIC), "@pl.jit.inline does not accept a level= argument"),
        (lambda: pl.jit.opaque(level=None), "@pl.jit.opaque does not accept a level= argument"),
        (lambda: pl.jit.incore(auto_scope=True), "@pl.jit.incore does not accept an auto_scope= argument"),
        (lambda: pl.jit.opaque(auto_scope=False), "@pl.jit.opaque does not accept an auto_scope= argument"),
        (lambda: pl.jit(scope=1), "@pl.jit got an unexpected keyword argument 'scope'"),
    ],
)
def test_options_that_a_kind_does_not_have(make, message):
    with pytest.raises(TypeError) as info:
        make()
    assert message in str(info.value)


def star(x, *more): ...
def double_star(x, **more): ...
def keyword_only(x, *, k): ...
def positional_only(x, /, k): ...
async def coroutine(x): ...
def generator(x):
    yield x


@pytest.mark.parametrize(
    ("function", "phrase"),
    [
        (star, "*more"),
        (double_star, "**more"),
        (keyword_only, "keyword-only parameter 'k'"),
        (positional_only, "positional-only parameter 'x'"),
        (coroutine, "async"),
        (generator, "generator"),
        (lambda x: x, "lambda"),
        (3, "expects a function, got int"),
    ],
)
def test_functions_that_cannot_be_specialised_are_refused_at_decoration(function, phrase):
    with pytest.raises(TypeError) as info:
        pl.jit(function)
    assert phrase in str(info.value)


def test_the_source_is_not_looked_at_before_the_first_use():
    @pl.jit
    def never_called(x: pl.Tensor):
        import os

        return os.getcwd() + x

    assert never_called.__name__ == "never_called"


def test_a_helper_is_not_an_entry():
    @pl.jit.incore
    def kernel(x: pl.Tensor[[4, 8], pl.FP32]):
        return x

    with pytest.raises(TypeError, match=r"@pl\.jit\.incore function 'kernel' is a helper"):
        kernel(np.zeros((4, 8), np.float32))


def test_a_function_without_source_is_an_os_error():
    namespace = {"pl": pl}
    exec("@pl.jit\ndef lost(x: pl.Tensor):\n    return x\n", namespace)
    with pytest.raises(OSError, match="cannot retrieve source code for 'lost'"):
        namespace["lost"].specialize(np.zeros((4, 8), np.float32))


def test_declarations_of_the_kinds(ones):
    @pl.jit.incore(level=pl.Level.CHIP_DIE)
    def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], y)
        return y

    @pl.jit.opaque
    def middle(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = kernel(x, y)
        return y

    @pl.jit.inline(auto_scope=False)
    def spliced(x: pl.Tensor, y: pl.Tensor):
        y = middle(x, y)
        return y

    @pl.jit(auto_scope=False)
    def entry(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = spliced(x, y)
        return y

    program = entry.specialize(ones(16, 16), ones(16, 16))
    assert program.name == "_jit_entry"
    kinds = {g.name: f.func_type for g, f in program.functions.items()}
    assert kinds == {
        "entry": pl.FunctionType.Orchestration,
        "kernel": pl.FunctionType.InCore,
        "middle": pl.FunctionType.Opaque,
        "spliced": pl.FunctionType.Inline,
    }
    assert program["entry"].attrs["auto_scope"] is False
    assert program["spliced"].attrs["auto_scope"] is False
    assert "auto_scope" not in program["middle"].attrs
