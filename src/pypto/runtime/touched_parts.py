"""What kernels touch of their arguments, as words for the task runtime, which orders tasks by it.

The runtime evaluates the boxes of :mod:`pypto.analysis.access` when a task is submitted: ``native/runtime/parts.h``
says what the words mean. Whether the launches of an orchestration may be ordered by parts is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..analysis.access import Access, Footprint
from ..analysis.affine import BLOCK, Affine
from ..analysis.overwrites import narrowing_of
from ..analysis.touch import Touch
from ..ir.expr import Var
from ..ir.program import Function, Program
from ..ir.type import ScalarType, TensorType

_SCALAR, _EXTENT, _BLOCK = 0, 1, 2  # kinds of terms: PartTerm in parts.h
_NOTHING_KNOWN = 0

# Where a task finds the value of a variable: the kind of a term, and its two words.
_Place = tuple[int, int, int]


def parts_of_kernels(program: Program, orchestration: Function, kernels: Sequence[Function]) -> list[tuple[int, ...]]:
    """The words of each kernel; no words where the launches of the orchestration can't be ordered by parts."""
    narrowing = narrowing_of(program)
    if not narrowing.allows(orchestration):
        return [()] * len(kernels)
    return [part_words(kernel, narrowing.footprints.of(kernel)) for kernel in kernels]


def part_words(kernel: Function, footprint: Footprint | None) -> tuple[int, ...]:
    """The words of one kernel. A task's arguments are a kernel's tensors, then its scalars, in the order of the
    parameters."""
    if footprint is None:
        return ()
    places = _places(kernel)
    tensors = [i for i, param in enumerate(kernel.params) if isinstance(param.type, TensorType)]
    boxes = [_boxes(footprint[i], places) for i in tensors]
    head = [len(tensors)]
    at = 1 + len(tensors)
    for words in boxes:
        head.append(at if words else _NOTHING_KNOWN)
        at += len(words)
    return (*head, *(word for words in boxes for word in words))


def _places(kernel: Function) -> dict[Any, _Place]:
    found: dict[Any, _Place] = {BLOCK: (_BLOCK, 0, 0)}
    tensors = scalars = 0
    for param in kernel.params:
        if isinstance(param.type, TensorType):
            for axis, extent in enumerate(param.type.shape):
                if type(extent) is Var:
                    found.setdefault(extent, (_EXTENT, tensors, axis))
            tensors += 1
            continue
        if isinstance(param.type, ScalarType):
            width = param.type.dtype.get_bit()
            found[param] = (_SCALAR, scalars, width if param.type.dtype.is_unsigned_ else -width)
        scalars += 1
    return found


def _boxes(access: Access | None, places: dict[Any, _Place]) -> list[int]:
    touches = [touch for touch in (access.read, access.write) if touch is not None] if access is not None else []
    if not touches:
        return []
    return [len(touches), len(touches[0].dims), *(word for touch in touches for word in _box(touch, places))]


def _box(touch: Touch, places: dict[Any, _Place]) -> list[int]:
    words: list[int] = []
    for span in touch.dims:
        forms = [] if span is None else [_form(form, places) for form in span.forms()]
        if forms and all(forms):
            words += [1, *(word for form in forms for word in form)]
        else:
            words.append(0)
    return words


def _form(form: Affine, places: dict[Any, _Place]) -> list[int]:
    """The words of a form; none if a task does not know all variables in it, or a number is too large."""
    words = [form.const, len(form.terms)]
    for key, factor in form.terms.items():
        if key not in places:
            return []
        words += (factor, *places[key])
    return words if all(-(2**63) <= word < 2**63 for word in words) else []


__all__ = ["part_words", "parts_of_kernels"]
