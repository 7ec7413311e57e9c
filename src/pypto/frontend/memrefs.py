"""``pl.MemRef(...)`` in annotations: resolved byte ranges and allocations declared by the author."""

from __future__ import annotations

import ast
from typing import Any

from ..ir.dtype import DataType
from ..ir.enums import MemorySpace
from ..ir.expr import ConstInt, Expr, MemRef, Var, index_const
from ..ir.type import PtrType, ScalarType
from .base import ParserBase
from .closure import MISSING, dotted


class MemRefAnnotations(ParserBase):
    """MemRef syntax. Declared names are a name space of their own, one pointer a name and function."""

    memref_bases: dict[str, Var]
    declared: dict[str, tuple[Any, MemRef]]  # name -> (identity of the declaration, its MemRef)
    declared_names: dict[int, str]

    def is_memref(self, node: ast.expr) -> bool:
        """Whether an annotation element is a memref in one of its forms."""
        if type(node) is ast.Subscript:
            node = node.value
        if type(node) is ast.Call:
            parts = dotted(node.func)
            return parts is not None and parts[-1] == "MemRef"
        parts = dotted(node)
        return parts is not None and isinstance(self.closure.attribute_chain(parts), MemRef)

    def memref(self, node: ast.expr) -> MemRef:
        """The MemRef of an annotation element."""
        if type(node) is ast.Subscript:
            base = self.memref(node.value)
            if not base.is_pinned_ and base.slot_count_ < 2:
                self.type_error("this MemRef cannot be subscripted", node)
            if base.slot_count_ < 2:
                self.type_error(f"MemRef '{base.name_hint}' has a single slot: it cannot be subscripted", node)
            index = self._slot_index(node.slice, base)
            return base.replace(slot_index_=index)
        if type(node) is ast.Call:
            return self._memref_call(node)
        parts = dotted(node) or ("",)
        value = self.closure.attribute_chain(parts)
        if not isinstance(value, MemRef):
            self.type_error("Expected pl.MemRef(...)", node)
        return self._declared(value.name_hint or parts[-1], value, value.slot_count_, node, alias=parts[-1])

    def _slot_index(self, node: ast.expr, base: MemRef) -> Expr:
        index = self.index_expression(node, "MemRef slot")  # type: ignore[attr-defined]
        if isinstance(index, int):
            if not 0 <= index < base.slot_count_:
                self.type_error(
                    f"Slot index {index} is out of range for {base.slot_count_} slots of '{base.name_hint}'", node
                )
            return index_const(index)
        return index  # type: ignore[no-any-return]

    def _memref_call(self, node: ast.Call) -> MemRef:
        slots = 1
        for keyword in node.keywords:
            if keyword.arg != "slots":
                self.type_error(f"pl.MemRef got an unknown keyword argument '{keyword.arg}'", node)
            value = keyword.value.value if type(keyword.value) is ast.Constant else MISSING
            if type(value) is not int or value < 1:
                self.type_error("MemRef slots must be a positive integer literal", keyword.value)
            slots = value
        args = node.args
        if len(args) == 1:
            text = args[0].value if type(args[0]) is ast.Constant else None
            if not isinstance(text, str) or not text:
                self.type_error("a declared MemRef name must be a non-empty string literal", args[0])
            return self._declared(text, None, slots, node)
        if len(args) == 4 or (len(args) == 3 and type(args[0]) is ast.Constant and type(args[0].value) is int):
            return self._legacy(args, node)
        if len(args) != 3:
            self.type_error("pl.MemRef requires 3 arguments (base, byte_offset, size)", node)
        base = self._base(args[0])
        offset = self._byte_offset(args[1])
        size = self._size(args[2])
        return MemRef(base, offset, size, span=self.span(node), slots=slots)

    def _legacy(self, args: list[ast.expr], node: ast.Call) -> MemRef:
        values: list[Any] = []
        rest = args
        if len(args) == 4:
            parts = dotted(args[0])
            space = MemorySpace.__members__.get(parts[-1]) if parts else None
            if space is None:
                self.type_error(f"Unknown memory space: {ast.unparse(args[0])}", args[0])
            values.append(space)
            rest = args[1:]
        for arg in rest:
            values.append(self._size(arg))
        made = MemRef(*values, span=self.span(node))
        base = self.memref_bases.setdefault(made.name_hint, made.base_)
        return made.replace(base_=base)

    def _base(self, node: ast.expr) -> Var:
        if type(node) is ast.Constant and isinstance(node.value, str):
            name = node.value
        elif type(node) is ast.Name:
            bound = self.scopes.lookup(node.id)
            if isinstance(bound, Var) and isinstance(bound.type, PtrType):
                return bound
            name = node.id
        else:
            self.type_error("pl.MemRef base must be a name or a string", node)
        found = self.memref_bases.get(name)
        if found is None:
            found = self.memref_bases[name] = Var(name, PtrType(), self.span(node))
        return found

    def _byte_offset(self, node: ast.expr) -> Expr:
        if type(node) is ast.Constant and type(node.value) is int:
            return ConstInt(node.value, DataType.INDEX, self.span(node))
        value: Expr = self.expr(node)  # type: ignore[attr-defined]
        if not (isinstance(value.type, ScalarType) and value.type.dtype.is_int_):
            self.type_error("MemRef byte_offset must be an index expression", node)
        return value

    def _size(self, node: ast.expr) -> int:
        value = node.value if type(node) is ast.Constant else self.evaluate(node)
        if type(value) is not int or value < 0:
            self.type_error("MemRef size must be a non-negative integer", node)
        return value

    def _declared(self, name: str, identity: Any, slots: int, node: ast.expr, alias: str = "") -> MemRef:
        if identity is not None:
            known = self.declared_names.setdefault(id(identity), name)
            if known != name:
                self.type_error(f"MemRef '{name}' is also referenced as '{known}': use one name", node)
        found = self.declared.get(name)
        if found is not None:
            if found[0] is not identity:
                self.type_error(f"two MemRef declarations both resolve to the name '{name}'", node)
            return found[1]
        base = Var(name, PtrType(), self.span(node))
        made = MemRef(base, 0, 0, span=self.span(node), is_pinned=True, slots=slots)
        self.declared[name] = (identity, made)
        return made
