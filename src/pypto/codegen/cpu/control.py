"""Loops and branches: what they carry stands in memory of its own, or in a variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.expr import Call, Var
from ...ir.stmt import ForStmt, IfStmt, Stmt, WhileStmt, YieldStmt
from ...ir.traversal import walk
from ...ir.type import ScalarType, ShapedType, TensorType
from .arrays import Array, Size, Unsupported
from .products import Products
from .values import scalar_type, static


class _Carry:
    """Where a loop or branch puts what its body yields: an array, the name of a scalar, or nothing for tensors that are
    known by another name. ``var``: what is yielded; ``begin``: the position of the loop."""

    __slots__ = ("array", "begin", "name", "var")

    def __init__(
        self, array: Array | None = None, name: str = "", var: Var | None = None, begin: int | None = None
    ) -> None:
        self.array = array
        self.name = name
        self.var = var
        self.begin = begin


class Control(Products):
    """Loops and branches. ``_stmt`` is what writes a statement."""

    _carries: list[list[_Carry]]

    def _stmt(self, stmt: Any) -> None:
        raise NotImplementedError

    def _parameter(self, var: Var) -> bool:
        """Whether a tensor is, or may be, a parameter or a part of one."""
        if not isinstance(var.type, TensorType):
            return False
        return any(root is param for root in self._names.candidates(var) for param in self._function.params)

    def _check_copy(self, carry: Var, value: Any, since: int, is_needed: bool) -> None:
        """A carry is a copy: where the program would see that it is one, there is no native form. ``is_needed``: so is
        what was copied."""
        if is_needed or self._parameter(value):
            for var in (carry, value):
                if self._lives.is_changed(var, since):
                    raise Unsupported(f"'{var.name_hint}', which is changed under one of several names")

    def _enter_carries(self, stmt: Any) -> list[_Carry]:
        carries = []
        for arg in stmt.iter_args:
            if isinstance(arg.type, ScalarType):
                name = self._fresh(arg)
                self._out.line(f"{scalar_type(arg.type.dtype)} {name} = {self._text(arg.initValue)};")
                self._values[arg] = name
                carries.append(_Carry(name=name))
            elif isinstance(arg.type, TensorType) and self._names.name(arg) is not None:
                self._values[arg] = self._array(arg.initValue)
                carries.append(_Carry())
            elif isinstance(arg.type, ShapedType):
                first: Any = arg.initValue
                twice = sum(first is a.initValue for a in stmt.iter_args) > 1
                self._check_copy(arg, first, self._position, twice or self._lives.memory(first) > self._position)
                last = max(self._lives.end_of(stmt), self._lives.memory(arg))
                array = self._carried(arg, last, [c.array for c in carries])
                carries.append(_Carry(array, var=arg, begin=self._position))
                if self._lives.last(first) <= self._position and not twice:
                    self._group_vars.pop(first, None)  # nobody else needs it
            else:
                raise Unsupported(f"a carry of type {arg.type}")
        return carries

    def _carried(self, arg: Any, last: int, others: Sequence[Array | None]) -> Array:
        """Memory that holds a carry, with its initial value: where that stands, if nobody else needs it."""
        shape = [static(e) for e in arg.type.shape]
        first = self._value(arg.initValue)
        if (
            type(first) is Array
            and self._is_own(first)
            and first.is_packed
            and first.shape == tuple(shape)
            and all(other is None or other.root is not first.root for other in others)
            and self._lives.is_last(arg.initValue, self._position, arg)
        ):
            self._keep(first, last)
            self._values[arg] = first.seen(valid=self._valid(arg))
            return self._values[arg]  # type: ignore[no-any-return]
        target = self._memory(arg.type.dtype, shape, last).seen(valid=self._valid(arg))
        self._put(arg.initValue, target)
        self._values[arg] = target
        return target

    def _bound(self, e: Any) -> Size:
        """An end of a loop, computed once."""
        return self._index_name(self._size(e))

    def _for(self, stmt: ForStmt) -> None:
        carries = self._enter_carries(stmt)
        self._flush()
        start, stop = self._bound(stmt.start), self._bound(stmt.stop)
        name = self._fresh(stmt.loop_var)
        step = self._bound(stmt.step)
        self._values[stmt.loop_var] = name
        if isinstance(step, str):
            self._fail_if(f"{step} == 0", "pto::zero_step({place})")
            more = f"{step} > 0 ? {name} < {stop} : {name} > {stop}"
        else:
            if step == 0:
                raise Unsupported("a loop whose step is 0")
            if step > 0 and self._expressions.at_least_zero(stmt.start):
                self._expressions.not_negative.add(stmt.loop_var)
            more = f"{name} {'<' if step > 0 else '>'} {stop}"
        self._out.open(f"for (int64_t {name} = {start}; {more}; {name} += {step}) {{")
        self._body(stmt.body, carries)
        self._out.close()
        self._leave(stmt, carries)

    def _while(self, stmt: WhileStmt) -> None:
        carries = self._enter_carries(stmt)
        self._flush()
        if any(type(node) is Call for node in walk(stmt.condition)):  # it reads memory, with checks
            self._out.open("while (true) {")
            self._out.line(f"if (!({self._text(stmt.condition)})) break;")
        else:
            self._out.open(f"while ({self._text(stmt.condition)}) {{")
        self._body(stmt.body, carries)
        self._out.close()
        self._leave(stmt, carries)

    def _body(self, body: Stmt, carries: list[_Carry]) -> None:
        self._carries.append(carries)
        self._stmt(body)
        self._flush()
        self._carries.pop()

    def _leave(self, stmt: Any, carries: list[_Carry]) -> None:
        self._position = self._lives.end_of(stmt)
        for var, arg, carry in zip(stmt.return_vars, stmt.iter_args, carries, strict=True):
            self._values[var] = carry.name or carry.array or self._values[arg]

    def _if(self, stmt: IfStmt) -> None:
        self._flush()
        carries = []
        for var in stmt.return_vars:
            if isinstance(var.type, ScalarType):
                name = self._fresh(var)
                self._out.line(f"{scalar_type(var.type.dtype)} {name}{{}};")
                carries.append(_Carry(name=name))
            elif isinstance(var.type, TensorType) and self._names.name(var) is not None:
                carries.append(_Carry())
            else:
                carries.append(_Carry(self._buffer(var), var=var))
        condition = self._text(stmt.condition)
        self._flush()
        self._out.open(f"if ({condition}) {{")
        self._body(stmt.then_body, carries)
        if stmt.else_body is not None:
            self._out.middle("} else {")
            self._body(stmt.else_body, carries)
        self._out.close()
        self._position = self._lives.end_of(stmt)
        for var, carry in zip(stmt.return_vars, carries, strict=True):
            if carry.array is None and not carry.name:
                self._values[var] = self._values[self._names.name(var)]  # type: ignore[index]
            else:
                self._values[var] = carry.name or carry.array

    def _yield(self, stmt: YieldStmt) -> None:
        if not self._carries or len(self._carries[-1]) != len(stmt.value):
            raise Unsupported("a yield out of a branch without results")
        values: list[tuple[Any, _Carry]] = list(zip(stmt.value, self._carries[-1], strict=True))
        # All values first, then all carries: an exchange must not read what it has written.
        assigned = []
        for value, carry in values:
            if carry.name:
                text = self._text(value)
                if text != carry.name:
                    kept = self._fresh()
                    self._out.line(f"const auto {kept} = {text};")
                    assigned.append((carry.name, kept))
        arrays = [(value, carry.array) for value, carry in values if carry.array is not None]
        targets = [array for _, array in arrays]
        for value, carry in values:
            if carry.var is not None:
                since = self._position if carry.begin is None else carry.begin
                stays = self._lives.memory(value) > since if carry.begin is None else self._lives.first(value) < since
                twice = sum(value is other for other, _ in values) > 1
                self._check_copy(carry.var, value, since, stays or twice)
        moved: list[tuple[Any, Array]] = []
        for value, array in arrays:
            known = self._value(value)
            if type(known) is Array:
                if known.same_place(array):
                    continue
                if any(known.root is other.root for other in targets):
                    copied = Var("copy", value.type, value.span)
                    self._lives.adopt(copied, self._position)
                    self._values[copied] = self._duplicate(known)
                    value = copied
            moved.append((value, array))
        for i, (value, array) in enumerate(moved):
            self._put(value, array)
            if self._lives.last(value) <= self._position and all(value is not other for other, _ in moved[i + 1 :]):
                self._group_vars.pop(value, None)  # nobody else needs it
        self._flush()
        for name, kept in assigned:
            self._out.line(f"{name} = {kept};")


__all__ = ["Control"]
