"""``IRVisitor``: a walk over the IR that subclasses change node class by node class."""

from __future__ import annotations

from typing import Any

from . import expr as x
from . import stmt as s
from .expr import Expr
from .generated import make_function
from .node import IRNode, Kind
from .program import Function, Program
from .stmt import Stmt
from .traversal import (
    CONSTANTS,
    NODE_CLASSES,
    Method,
    MethodTable,
    Traversal,
    attrs_expressions,
    carried_fields,
    reading_order,
)
from .type import TensorType

# --- the default walk of each class -----------------------------------------------------------------------------------


def _compile(cls: type[IRNode]) -> Method:
    """Straight-line code that visits the children of a node in reading order."""
    lines = []
    carried = carried_fields(cls)
    for info in reading_order(cls):
        value = f"op.{info.name}"
        if info.kind is Kind.MAP:
            lines += [f"for f in {value}.values(): self.visit_function(f)"]
        elif info.kind is Kind.NODE:
            lines += [f"c = {value}", "d[type(c)](self, c)"]
        elif info.kind is Kind.OPTIONAL:
            lines += [f"c = {value}", "if c is not None: d[type(c)](self, c)"]
        elif info.kind is Kind.ATTRS:
            lines += [f"if {value}:", f"    for c in attrs_expressions({value}): d[type(c)](self, c)"]
        elif info.name in carried:
            lines += [
                f"c = {value}",
                "if c:",
                "    self._fresh.update(c)",
                "    for x in c: d[type(x)](self, x)",
                "    self._fresh.difference_update(c)",
            ]
        else:
            lines += [f"for c in {value}: d[type(c)](self, c)"]
    body = ["d = self._dispatch", *lines] if lines else ["return"]
    env: dict[str, Any] = {"attrs_expressions": attrs_expressions}
    return make_function("visit", "self, op", body, env)  # type: ignore[no-any-return]


def _leaf(self: IRVisitor, op: Any) -> None:
    pass


def _var_like(self: IRVisitor, op: Any) -> None:
    kind = op.type
    if type(kind) is TensorType:
        d = self._dispatch
        for dim in kind.shape:
            d[type(dim)](self, dim)


def _iter_arg(self: IRVisitor, op: Any) -> None:
    self.visit_var_like(op)
    if op in self._fresh:
        self._fresh.discard(op)
        value = op.initValue
        self._dispatch[type(value)](self, value)


def _binary(self: IRVisitor, op: Any) -> None:
    d, spine = self._dispatch, self._spine
    left = op.left
    if type(left) in spine:
        # Left-leaning chains may be thousands of levels deep: down the spine, then the right operands upwards.
        pending = [op]
        while type(left) in spine:
            pending.append(left)
            left = left.left
        d[type(left)](self, left)
        while pending:
            right = pending.pop().right
            d[type(right)](self, right)
        return
    d[type(left)](self, left)
    right = op.right
    d[type(right)](self, right)


_BY_HAND: dict[type[IRNode], Method] = {
    **{cls: _leaf for cls in CONSTANTS},
    **{cls: _binary for cls in x.BINARY_CLASSES},
    x.Var: _var_like,
    x.IterArg: _iter_arg,
    x.MemRef: _leaf,
    x.WindowBuffer: _leaf,
}

_DEFAULTS = MethodTable({cls: _BY_HAND.get(cls) or _compile(cls) for cls in NODE_CLASSES})


class IRVisitor(Traversal):
    """Walks programs, functions, statements and expressions.

    Override ``visit_<node class>`` to do something at nodes of that class; ``super().visit_<node class>(op)`` goes on
    to the children. ``visit_expr`` and ``visit_stmt`` see every expression or statement before its own method.
    The initial value of an iter_arg is visited with the definition of the iter_arg, not with its uses.
    """

    _defaults = _DEFAULTS

    @classmethod
    def _method_of(cls, node_class: type[IRNode]) -> Method:
        if node_class is x.Var and cls._overrides("visit_var_like") and not cls._overrides("visit_var"):
            return cls.visit_var_like
        return super()._method_of(node_class)

    def visit_program(self, program: Program) -> None:
        """Visit the functions, in name order."""
        self._default(program)

    def visit_function(self, func: Function) -> None:
        """Visit parameters, expressions in attributes, and the body."""
        self._default(func)

    def visit_expr(self, expr: Expr) -> None:
        """Visit an expression by the method of its class."""
        method = self._methods[type(expr)]
        if self._active:
            method(self, expr)
        else:
            self._start(method, expr)

    def visit_stmt(self, stmt: Stmt) -> None:
        """Visit a statement by the method of its class."""
        method = self._methods[type(stmt)]
        if self._active:
            method(self, stmt)
        else:
            self._start(method, stmt)

    # --- expressions ---

    def visit_var_like(self, op: x.Var) -> None:
        """Visit the dims in the type of a variable: what ``visit_var`` and ``visit_iter_arg`` call."""
        _var_like(self, op)

    def visit_var(self, op: x.Var) -> None:
        self.visit_var_like(op)

    def visit_iter_arg(self, op: x.IterArg) -> None:
        self._default(op)

    def visit_mem_ref(self, op: x.MemRef) -> None:
        self._default(op)

    def visit_window_buffer(self, op: x.WindowBuffer) -> None:
        self._default(op)

    def visit_const_int(self, op: x.ConstInt) -> None:
        self._default(op)

    def visit_const_float(self, op: x.ConstFloat) -> None:
        self._default(op)

    def visit_const_bool(self, op: x.ConstBool) -> None:
        self._default(op)

    def visit_call(self, op: x.Call) -> None:
        self._default(op)

    def visit_submit(self, op: x.Submit) -> None:
        self._default(op)

    def visit_make_tuple(self, op: x.MakeTuple) -> None:
        self._default(op)

    def visit_tuple_get_item_expr(self, op: x.TupleGetItemExpr) -> None:
        self._default(op)

    def visit_binary_expr(self, op: x.BinaryExpr) -> None:
        """What the methods of two-operand operators call unless overridden."""
        self._default(op)

    def visit_add(self, op: x.Add) -> None:
        self.visit_binary_expr(op)

    def visit_sub(self, op: x.Sub) -> None:
        self.visit_binary_expr(op)

    def visit_mul(self, op: x.Mul) -> None:
        self.visit_binary_expr(op)

    def visit_floor_div(self, op: x.FloorDiv) -> None:
        self.visit_binary_expr(op)

    def visit_floor_mod(self, op: x.FloorMod) -> None:
        self.visit_binary_expr(op)

    def visit_float_div(self, op: x.FloatDiv) -> None:
        self.visit_binary_expr(op)

    def visit_min(self, op: x.Min) -> None:
        self.visit_binary_expr(op)

    def visit_max(self, op: x.Max) -> None:
        self.visit_binary_expr(op)

    def visit_pow(self, op: x.Pow) -> None:
        self.visit_binary_expr(op)

    def visit_eq(self, op: x.Eq) -> None:
        self.visit_binary_expr(op)

    def visit_ne(self, op: x.Ne) -> None:
        self.visit_binary_expr(op)

    def visit_lt(self, op: x.Lt) -> None:
        self.visit_binary_expr(op)

    def visit_le(self, op: x.Le) -> None:
        self.visit_binary_expr(op)

    def visit_gt(self, op: x.Gt) -> None:
        self.visit_binary_expr(op)

    def visit_ge(self, op: x.Ge) -> None:
        self.visit_binary_expr(op)

    def visit_and(self, op: x.And) -> None:
        self.visit_binary_expr(op)

    def visit_or(self, op: x.Or) -> None:
        self.visit_binary_expr(op)

    def visit_xor(self, op: x.Xor) -> None:
        self.visit_binary_expr(op)

    def visit_bit_and(self, op: x.BitAnd) -> None:
        self.visit_binary_expr(op)

    def visit_bit_or(self, op: x.BitOr) -> None:
        self.visit_binary_expr(op)

    def visit_bit_xor(self, op: x.BitXor) -> None:
        self.visit_binary_expr(op)

    def visit_bit_shift_left(self, op: x.BitShiftLeft) -> None:
        self.visit_binary_expr(op)

    def visit_bit_shift_right(self, op: x.BitShiftRight) -> None:
        self.visit_binary_expr(op)

    def visit_unary_expr(self, op: x.UnaryExpr) -> None:
        """What the methods of one-operand operators call unless overridden."""
        self._default(op)

    def visit_abs(self, op: x.Abs) -> None:
        self.visit_unary_expr(op)

    def visit_neg(self, op: x.Neg) -> None:
        self.visit_unary_expr(op)

    def visit_not(self, op: x.Not) -> None:
        self.visit_unary_expr(op)

    def visit_bit_not(self, op: x.BitNot) -> None:
        self.visit_unary_expr(op)

    def visit_cast(self, op: x.Cast) -> None:
        self.visit_unary_expr(op)

    # --- statements ---

    def visit_assign_stmt(self, op: s.AssignStmt) -> None:
        self._default(op)

    def visit_if_stmt(self, op: s.IfStmt) -> None:
        self._default(op)

    def visit_yield_stmt(self, op: s.YieldStmt) -> None:
        self._default(op)

    def visit_return_stmt(self, op: s.ReturnStmt) -> None:
        self._default(op)

    def visit_for_stmt(self, op: s.ForStmt) -> None:
        self._default(op)

    def visit_while_stmt(self, op: s.WhileStmt) -> None:
        self._default(op)

    def visit_seq_stmts(self, op: s.SeqStmts) -> None:
        self._default(op)

    def visit_eval_stmt(self, op: s.EvalStmt) -> None:
        self._default(op)

    def visit_break_stmt(self, op: s.BreakStmt) -> None:
        self._default(op)

    def visit_continue_stmt(self, op: s.ContinueStmt) -> None:
        self._default(op)

    def visit_inline_stmt(self, op: s.InlineStmt) -> None:
        self._default(op)

    def visit_in_core_scope_stmt(self, op: s.InCoreScopeStmt) -> None:
        self._default(op)

    def visit_cluster_scope_stmt(self, op: s.ClusterScopeStmt) -> None:
        self._default(op)

    def visit_hierarchy_scope_stmt(self, op: s.HierarchyScopeStmt) -> None:
        self._default(op)

    def visit_spmd_scope_stmt(self, op: s.SpmdScopeStmt) -> None:
        self._default(op)

    def visit_split_aiv_scope_stmt(self, op: s.SplitAivScopeStmt) -> None:
        self._default(op)

    def visit_runtime_scope_stmt(self, op: s.RuntimeScopeStmt) -> None:
        self._default(op)

    def visit_comm_domain_scope_stmt(self, op: s.CommDomainScopeStmt) -> None:
        self._default(op)
