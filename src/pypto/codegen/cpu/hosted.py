"""Operations without a native form, inside a kernel that has one: NumPy runs them, called through a pointer.

The call passes words of 64 bits. What they mean follows from the operation: of an array its address, extents, strides
in elements and valid extents; a scalar's bits; of a tuple the bits of each item; then the same of the results, whose
memory stands in the kernel's arena.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...ir.dtype import DataType
from ...ir.expr import Call, MakeTuple, Var
from ...ir.span import Span
from ...ir.type import ScalarType, ShapedType, TupleType
from ...ops.definition import Alias, OpDef
from .arrays import Array, Unsupported, is_narrow_float, storage
from .control import Control
from .values import scalar_type, static


class HostedCall(msgspec.Struct, frozen=True):
    """An operation that NumPy runs, and where it stands in the program."""

    call: Any
    span: Span


class Hosted(Control):
    """Operations that NumPy runs."""

    _hosted: list[HostedCall]

    def _host(self, var: Var | None, call: Call, definition: OpDef | None) -> None:
        in_place = self._check_hosted(call, definition)
        words: list[str] = []
        for e in call.args:
            if isinstance(e.type, ShapedType):
                self._array(e)
        self._flush()
        for e in call.args:
            words += self._argument_words(e)
        found: Any = None
        if in_place is not None:
            found = self._array(call.args[in_place])
            self._owned(found, call.args[in_place])
            if var is not None:
                found = found.seen(valid=self._valid(var))
        elif var is not None:
            found, more = self._result_words(var)
            words += more
        number = len(self._hosted)
        self._hosted.append(HostedCall(call, self._span))
        place = len(self._places)
        self._places.append(self._span)
        name = self._fresh()
        listed = ", ".join(words) or "0"
        self._out.line(f"int64_t {name}[] = {{{listed}}};")
        self._out.line(f"pto::on_host({self._name}_host, {number}, {place}, {name}, args);")
        if var is not None and isinstance(var.type, ScalarType):
            text = _from_word(var.type.dtype, f"{name}[{len(words) - 1}]")
            found = self._fresh(var)
            self._out.line(f"const {scalar_type(var.type.dtype)} {found} = {text};")
        if var is not None:
            self._values[var] = found

    @staticmethod
    def _check_hosted(call: Call, definition: OpDef | None) -> int | None:
        """The operand that is changed in place, if one is."""
        name = call.op.name
        if definition is None or definition.reference is None or not name.startswith(("tile.", "tensor.")):
            raise Unsupported(name)
        if definition.pipe_role is not None or definition.alias is Alias.VIEW or name.endswith((".create", ".alloc")):
            raise Unsupported(name)
        if any(not isinstance(e.type, (ShapedType, ScalarType)) and type(e) is not MakeTuple for e in call.args):
            raise Unsupported(name)
        return definition.alias_operand if definition.alias is Alias.IS else None

    def _argument_words(self, e: Any) -> list[str]:
        if type(e) is MakeTuple:
            return [word for item in e.elements for word in self._argument_words(item)]
        if isinstance(e.type, ShapedType):
            return _array_words(self._array(e))
        kind = scalar_type(e.type.dtype)
        return [f"pto::to_word<{kind}>({self._text(e)})"]

    def _result_words(self, var: Var) -> tuple[Any, list[str]]:
        kind: Any = var.type
        if isinstance(kind, TupleType):
            found, words = [], []
            for part in kind.types:
                if not isinstance(part, ShapedType):
                    raise Unsupported(f"a result of type {part}")
                made = self._memory(part.dtype, [static(n) for n in part.shape], self._lives.memory(var))
                made = made.seen(valid=self._sizes(part.valid_extents))
                found.append(made)
                words += _array_words(made)
            return found, words
        if isinstance(kind, ScalarType):
            return None, ["0"]
        if not isinstance(kind, ShapedType):
            raise Unsupported(f"a result of type {kind}")
        target = self._buffer(var)
        return target, _array_words(target)


def _array_words(array: Array) -> list[str]:
    storage(array.dtype)
    sizes = [f"static_cast<int64_t>({n})" for n in (*array.shape, *array.strides, *array.valid)]
    return [f"reinterpret_cast<int64_t>({array.pointer})", *sizes]


def _from_word(dtype: DataType, word: str) -> str:
    kind = "float" if is_narrow_float(dtype) else scalar_type(dtype)
    return f"pto::from_word<{kind}>({word})"


__all__ = ["Hosted", "HostedCall"]
