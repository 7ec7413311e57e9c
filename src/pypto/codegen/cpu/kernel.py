"""One kernel as a C++ function with the ABI of the task runtime.

Tensors stay where they are; a tile that is only loaded is read in place. Values that operations make are fused (see
:mod:`.rows`) or stand in an arena, whose places are decided here and reused when a value is not needed any more.
Operations that need more than a row (products, transpositions, reductions of columns) are calls of templates
(``native/kernel/``). What has no native form is a call back into NumPy (:mod:`.hosted`).

:func:`kernel_source` raises :class:`.arrays.Unsupported` where this is not possible either: the interpreter runs such
a kernel. Bounds are checked as the interpreter checks them, with the same words.

The generator is one object, in layers: :mod:`.values`, :mod:`.windows`, :mod:`.arithmetic`, :mod:`.products`,
:mod:`.control`, :mod:`.hosted`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ...ir.dtype import DataType
from ...ir.expr import Call, GlobalVar, MakeTuple, TupleGetItemExpr, Var
from ...ir.program import Function
from ...ir.span import Span
from ...ir.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, ReturnStmt, SeqStmts, WhileStmt, YieldStmt
from ...ir.type import ScalarType, ShapedType
from ...ops.registry import REGISTRY
from ..cpp_expressions import HELPERS
from .arrays import Unsupported
from .hosted import Hosted, HostedCall

# Kernels of which the text does not say all, or that exchange data with others while they run.
_OPAQUE = ("external_source", "deferred_completion_waiter", "split_aiv", "dual_aiv_dispatch")


class KernelSource(msgspec.Struct, frozen=True):
    """``text``: the C++ function ``name``, and ``<name>_instead``, a pointer to one for arguments with unusual strides,
    which the host sets; as ``<name>_host``, which runs ``hosted``, the operations without a native form, by number.
    ``scratch``: bytes of its arena; ``places``: what errors name by number; ``notes``: why an operation is in
    ``hosted``; ``products``: element types of matrices that it multiplies."""

    name: str
    text: str
    scratch: int
    places: list[Span]
    helpers: list[str]
    hosted: list[HostedCall]
    notes: list[str]
    products: frozenset[DataType]


def kernel_source(function: Function, name: str) -> KernelSource:
    """The C++ of a kernel. Raises :class:`.arrays.Unsupported`."""
    for key in _OPAQUE:
        if function.attrs.get(key):
            raise Unsupported(f"a kernel with {key}")
    return _Kernel(function, name).source()


class _Kernel(Hosted):
    def __init__(self, function: Function, name: str) -> None:
        super().__init__(function, name)
        self._carries = []
        self._hosted = []
        self._products = set()
        self._notes: dict[str, str] = {}

    def source(self) -> KernelSource:
        self._parameters()
        self._stmt(self._function.body)
        self._flush()
        helpers = sorted(self._expressions.helpers)
        head = [f"PTO_INSTEAD({self._name}_instead)"]
        if self._hosted:
            head.append(f"PTO_HOST({self._name}_host)")
        head.append(f"PTO_EXPORT void {self._name}(int64_t* args) {{")
        if self._scratch:
            head.append(f"    char* const arena = pto::kernel_arena({self._scratch});")
        text = "\n".join([*head, *self._out.lines, "}"])
        notes = [f"{op} ({reason})" for op, reason in self._notes.items()]
        return KernelSource(
            self._name, text, self._scratch, self._places, helpers, self._hosted, notes, frozenset(self._products)
        )

    # --- statements ---------------------------------------------------------------------------------------------------

    def _stmt(self, stmt: Any) -> None:
        cls = type(stmt)
        if cls is SeqStmts:
            for inner in stmt.stmts:
                self._stmt(inner)
            return
        self._position = self._lives.position.get(stmt, self._position)
        if stmt.span.is_valid():
            self._span = stmt.span
        if cls is AssignStmt:
            self._assign(stmt.var, stmt.value)
        elif cls is EvalStmt:
            self._assign(None, stmt.expr)
        elif cls is ForStmt:
            self._for(stmt)
        elif cls is WhileStmt:
            self._while(stmt)
        elif cls is IfStmt:
            self._if(stmt)
        elif cls is YieldStmt:
            self._yield(stmt)
        elif cls is ReturnStmt:
            self._flush()
        else:
            raise Unsupported(f"a statement of kind {cls.__name__}")

    def _assign(self, var: Var | None, value: Any) -> None:
        if type(value) is Call and value.op.name == "system.task_invalid":
            return  # no kernel can use it
        if isinstance(value, Var):
            if var is not None:
                self._values[var] = self._value(value)
                if value in self._group_vars:
                    self._group_vars[var] = self._group_vars[value]
            return
        if type(value) is TupleGetItemExpr and var is not None and isinstance(value.tuple, Var):
            self._values[var] = self._value(value.tuple)[value.index]
            return
        if type(value) is MakeTuple:
            if var is not None:
                self._tuple(var, value)
        elif type(value) is Call and type(value.op) is not GlobalVar and self._is_hosted_scalar(value):
            self._call(var, value)
        elif var is not None and isinstance(var.type, ScalarType):
            self._scalar_assign(var, value)
        elif type(value) is Call and type(value.op) is not GlobalVar:
            self._call(var, value)
        else:
            raise Unsupported(f"an expression of kind {type(value).__name__}")

    def _tuple(self, var: Var, value: MakeTuple) -> None:
        """What an inline function with several results leaves behind."""
        if any(not isinstance(e.type, ScalarType) and not isinstance(e, Var) for e in value.elements):
            raise Unsupported("a tuple of unnamed values")
        for e in value.elements:
            if isinstance(e.type, ShapedType):  # in memory, where it stays
                self._array(e)
        self._flush()
        self._values[var] = [
            self._scalar_name(e, e.type.dtype) if isinstance(e.type, ScalarType) else self._value(e)
            for e in value.elements
        ]

    @staticmethod
    def _is_hosted_scalar(call: Call) -> bool:
        """Whether an operation gives a scalar and is no part of scalar expressions."""
        base = call.op.name.partition(".")[2]
        return isinstance(call.type, ScalarType) and base not in _SCALAR_CALLS and call.op.name in REGISTRY

    def _call(self, var: Var | None, call: Call) -> None:
        name = call.op.name
        base = name.partition(".")[2]
        definition = REGISTRY.get(name)
        handler: Callable[..., None] | None = None
        if name.startswith(("tile.", "tensor.")):
            handler = _HANDLERS.get(name) or _HANDLERS.get(base)
        try:
            if handler is not None and (var is not None or base in _EFFECTS):
                handler(self, var, call)
            elif definition is not None and definition.element and var is not None:
                self._element(var, call, definition)
            elif definition is not None and definition.fold and var is not None:
                self._fold(var, call, definition)
            elif base in ("row_argmax", "row_argmin", "col_argmax", "col_argmin") and definition and var is not None:
                self._arg_fold(var, call, definition)
            else:
                raise Unsupported("it has no native form")
        except Unsupported as reason:  # before anything was written, except for checks
            self._host(var, call, definition)
            self._notes.setdefault(name, str(reason))


_SCALAR_CALLS = frozenset(("get_block_idx", "get_block_num", "dim", "read"))
# Operations that do something even if nobody takes their result.
_EFFECTS = frozenset(("store", "assemble", "write", "gather_row"))

_HANDLERS: dict[str, Callable[..., None]] = {
    "load": _Kernel._load,
    "slice": _Kernel._slice,
    "extract": _Kernel._extract,
    "move": _Kernel._same,
    "set_validshape": _Kernel._same,
    "reshape": _Kernel._reshape,
    "transpose_view": _Kernel._transpose_view,
    "transpose": _Kernel._transpose,
    "create": _Kernel._create,
    "full": _Kernel._full,
    "ci": _Kernel._ci,
    "concat": _Kernel._concat,
    "fillpad": _Kernel._fillpad,
    "fillpad_inplace": _Kernel._fillpad,
    "fillpad_expand": _Kernel._fillpad,
    **{f"part_{how}": _Kernel._partial for how in ("add", "mul", "max", "min")},
    "cast": _Kernel._cast,
    "store": _Kernel._store,
    "assemble": _Kernel._store,
    "write": _Kernel._write,
    "gather_row": _Kernel._gather_row,
    "tile.row_expand_add": _Kernel._row_expand_add,
    "expand_clone": _Kernel._expand_clone,
    "tensor.cmp": _Kernel._compare,
    "tile.cmp": _Kernel._packed_compare,
    "tile.cmps": _Kernel._packed_compare,
    "sel": _Kernel._select,
    "sels": _Kernel._select,
    **{f"sh{way}{form}": _Kernel._shift for way in "lr" for form in ("", "s")},
    **{
        name: _Kernel._matmul
        for name in (
            "matmul", "matmul_acc", "matmul_bias", "batch_matmul", "batch_matmul_acc", "gemv", "gemv_acc", "gemv_bias",
        )
    },
}  # fmt: skip

__all__ = ["HELPERS", "KernelSource", "kernel_source"]
