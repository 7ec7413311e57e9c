"""What ops touch of their operands, as their definitions say: compared with what an evaluation really does."""

import numpy as np
import pytest

from pypto.ir.enums import ArgEffect
from pypto.ops import REGISTRY
from pypto.ops.definition import Alias
from pypto.ops.footprint import touched_elements, touched_operands
from pypto.ops.partial_window import PartialWindow
from pypto.ops.values import ArrayValue, Buffer, EvalContext

R, W, RW = ArgEffect.Read, ArgEffect.Write, ArgEffect.ReadWrite


def tensor(shape=(8, 8), valid=None):
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return ArrayValue(data, Buffer(data), valid)


def tile(shape, valid=None):
    data = -1 - np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return ArrayValue(data, Buffer(data), valid)


def touched(op, args, **kwargs):
    """``{operand: (effect, atomic, numbers of its elements)}`` for the arrays among the operands."""
    definition = REGISTRY[op]
    found = {}
    for index, effect, atomic in touched_operands(definition, kwargs, len(args)):
        if isinstance(args[index], ArrayValue):
            elements = touched_elements(definition, index, args, kwargs, effect)
            found[index] = (effect, atomic, sorted(int(n) for n in elements.reshape(-1)))
    return found


def numbers(*window, shape=(8, 8)):
    return sorted(int(n) for n in np.arange(np.prod(shape)).reshape(shape)[window].reshape(-1))


WRITES = {
    "store": ("tile.store", lambda t: [tile((2, 3)), [1, 2], t], {}, 2),
    "store of a part": ("tile.store", lambda t: [tile((4, 4), (2, 3)), [1, 2], t], {}, 2),
    "store of a flattened tile": ("tile.store", lambda t: [tile((4, 3), (2, 3)), [1, 2, 0], t, [1, 4, 3]], {}, 2),
    "store of fewer axes": ("tile.store", lambda t: [tile((3, 2)), [4, 1, 2], t], {}, 2),
    "assemble": ("tensor.assemble", lambda t: [t, tile((2, 3)), [5, 1]], {}, 0),
    "assemble of a part": ("tensor.assemble", lambda t: [t, tile((2, 3), (1, 3)), [5, 1]], {}, 0),
    "write": ("tensor.write", lambda t: [t, [3, 4], -1.0], {}, 0),
    "gathered rows": ("tensor.gather_row", lambda t: [t, tile((8, 8)), [1, 2], [0, 0], [2, 3]], {}, 0),
    "transposed": ("tensor.gather_row", lambda t: [t, tile((8, 8)), [1, 2], [0, 0], [2, 3]], {"transpose": True}, 0),
}


@pytest.mark.parametrize("case", WRITES)
def test_the_elements_that_change_are_those_that_are_told(case):
    op, make, kwargs, index = WRITES[case]
    target = tensor((8, 8, 8) if "axes" in case or "flattened" in case else (8, 8))
    before = target.data.copy()
    args = make(target)
    effect, atomic, told = touched(op, args, **kwargs)[index]
    REGISTRY[op].reference(EvalContext(), *args, **kwargs)
    assert told == sorted(int(n) for n in before[target.data != before])
    assert effect is not R and not atomic


@pytest.mark.parametrize("op", ["tile.store", "tensor.assemble"])
def test_atomic_adds(op):
    t = tensor()
    args = [tile((2, 3)), [1, 2], t] if op == "tile.store" else [t, tile((2, 3)), [1, 2]]
    index = 2 if op == "tile.store" else 0
    assert touched(op, args, atomic=1)[index] == (RW, True, numbers(slice(1, 3), slice(2, 5)))
    assert touched(op, args)[index] == (W, False, numbers(slice(1, 3), slice(2, 5)))


@pytest.mark.parametrize(
    ("args", "window"),
    [
        ([[1, 2], [2, 3]], (slice(1, 3), slice(2, 5))),
        ([[1, 2], [4, 4], [2, 3]], (slice(1, 3), slice(2, 5))),
        ([[1, 2], [2, 3], []], (slice(1, 3), slice(2, 5))),
        ([[6, 0], [4, 8]], (slice(6, 8), slice(0, 8))),  # reaches past the end: what is there
    ],
)
def test_loads(args, window):
    assert touched("tile.load", [tensor(), *args]) == {0: (R, False, numbers(*window))}


def test_a_load_reads_the_valid_part():
    assert touched("tile.load", [tensor(valid=(2, 8)), [1, 0], [4, 4]])[0][2] == numbers(slice(1, 2), slice(0, 4))


def test_a_load_of_fewer_axes_than_the_tensor():
    """Leading axes are merged."""
    found = touched("tile.load", [tensor((2, 4, 8)), [3, 2], [2, 3]])[0][2]
    assert found == numbers(slice(3, 5), slice(2, 5))


def test_a_load_of_a_view_that_is_no_box():
    """Merging the axes of a transposed view copies it: then it may be all of the view."""
    t = tensor((4, 4, 8))
    view = t.view(t.data.transpose(1, 0, 2))
    assert touched("tile.load", [view, [3, 2], [2, 3]])[0][2] == numbers(slice(None), shape=(128,))


def test_whole_operands():
    a, b = tensor(), tensor(valid=(2, 3))
    found = touched("tensor.add", [a, b])
    assert found == {0: (R, False, numbers(slice(None))), 1: (R, False, numbers(slice(0, 2), slice(0, 3)))}


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("tensor.slice", [tensor(), [2, 2], [0, 0]]),
        ("tensor.reshape", [tensor(), [64]]),
        ("tensor.set_validshape", [tensor(), 1, 1]),
        ("tensor.dim", [tensor(), 0]),
        ("system.cacheinvalid", [tensor(), [8, 8], [0, 0]]),
        ("prefetch.async_prefetch", [tensor(), "context"]),
    ],
)
def test_views_and_shapes_touch_nothing(op, args):
    assert touched(op, args) == {}


def test_a_window_past_the_end():
    data = np.arange(64, dtype=np.float32).reshape(8, 8)
    window = PartialWindow(data[6:], Buffer(data), (4, 8), (2, 8))
    assert touched("tile.load", [window, [0, 0], [4, 8]])[0][2] == numbers(slice(6, 8))
    assert touched("tensor.add", [window, window])[0][2] == numbers(slice(6, 8))
    assert touched("tensor.write", [window, [1, 1], 0.0])[0][2] == [57]


def test_windows_name_operands_that_exist():
    for definition in REGISTRY.values():
        for index, window in definition.windows.items():
            for operand in (index, window.offsets, *window.extents):
                assert operand < len(definition.operands), definition.name
            assert definition.operands[window.offsets].role == "index", definition.name
            assert not window.transposed or window.transposed in definition.kwargs, definition.name
            assert definition.alias is not Alias.VIEW, definition.name
