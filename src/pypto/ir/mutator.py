"""``IRMutator``: a rewrite of the IR that subclasses change node class by node class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from . import expr as x
from . import stmt as s
from .expr import Expr
from .program import Function, Program
from .rewriting import DEFAULTS
from .stmt import Stmt
from .traversal import CONSTANTS, NODE_CLASSES, Traversal
from .type_fields import is_closed, map_type


class IRMutator(Traversal):
    """Rewrites programs, functions, statements and expressions; a method returns the new node.

    A node of which no child changes is returned itself, so a rewrite that changes nothing gives its input object. A
    changed child gives a copy with all other fields kept. A variable whose type mentions changed expressions is made
    anew, and its later uses follow. A statement is deleted by returning an empty ``SeqStmts``.
    """

    _defaults = DEFAULTS

    # Whether a subclass looks at expressions. If not, and no variable was made anew, no expression can change, and
    # statements are rewritten without going into them.
    _visits_expressions: ClassVar[bool]
    # Whether a subclass may change constants, and so types that hold no other expression.
    _changes_constants: ClassVar[bool]

    # What variables are replaced by from here on. Subclasses may enter pairs, for instance where they define anew.
    _remap: dict[Any, Any]
    _retyping: set[Any]

    def _setup(self) -> None:
        self._remap = {}
        self._retyping = set()

    @classmethod
    def _build_tables(cls) -> None:
        super()._build_tables()
        default = cls._root._defaults
        overridden = [c for c in NODE_CLASSES if cls._dispatch[c] is not default[c]]
        cls._visits_expressions = any(issubclass(c, Expr) for c in overridden)
        cls._changes_constants = any(c in CONSTANTS for c in overridden)

    if TYPE_CHECKING:

        def _default_expr(self, op: Any) -> Expr: ...
        def _default_stmt(self, op: Any) -> Stmt: ...

    else:
        _default_expr = _default_stmt = Traversal._default

    # --- what the generated code calls ---

    def _rewrite_child(self, expr: Any) -> Any:
        return self._dispatch[type(expr)](self, expr)

    def _rewrite_type(self, kind: Any) -> Any:
        """A type with its expressions rewritten; the same object when none changes."""
        if not self._changes_constants and is_closed(kind):
            return kind
        return map_type(kind, self._rewrite_child)

    def _retype(self, op: Any) -> Any:
        """A variable made anew if its type changes; its uses then follow."""
        if not self._changes_constants and is_closed(op.type):
            return op
        if op in self._retyping:  # its type mentions it, through what replaces a variable there
            return op
        self._retyping.add(op)
        try:
            kind = map_type(op.type, self._rewrite_child)
        finally:
            self._retyping.discard(op)
        if kind is op.type:
            return op
        new = op.replace(type=kind)
        self._remap[op] = new
        return new

    # --- programs and functions ---

    def visit_program(self, program: Program) -> Program:
        """Rewrite the functions, in name order."""
        return self._default(program)  # type: ignore[no-any-return]

    def visit_function(self, func: Function) -> Function:
        """Rewrite parameters, attributes, result types and the body."""
        return self._default(func)  # type: ignore[no-any-return]

    def visit_expr(self, expr: Expr) -> Expr:
        """Rewrite an expression by the method of its class."""
        method = self._methods[type(expr)]
        if self._active:
            return method(self, expr)  # type: ignore[no-any-return]
        return self._start(method, expr)  # type: ignore[no-any-return]

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        """Rewrite a statement by the method of its class."""
        method = self._methods[type(stmt)]
        if self._active:
            return method(self, stmt)  # type: ignore[no-any-return]
        return self._start(method, stmt)  # type: ignore[no-any-return]

    # --- expressions ---

    def visit_var(self, op: x.Var) -> Expr:
        return self._default_expr(op)

    def visit_iter_arg(self, op: x.IterArg) -> Expr:
        return self._default_expr(op)

    def visit_mem_ref(self, op: x.MemRef) -> Expr:
        return self._default_expr(op)

    def visit_window_buffer(self, op: x.WindowBuffer) -> Expr:
        return self._default_expr(op)

    def visit_const_int(self, op: x.ConstInt) -> Expr:
        return self._default_expr(op)

    def visit_const_float(self, op: x.ConstFloat) -> Expr:
        return self._default_expr(op)

    def visit_const_bool(self, op: x.ConstBool) -> Expr:
        return self._default_expr(op)

    def visit_call(self, op: x.Call) -> Expr:
        return self._default_expr(op)

    def visit_submit(self, op: x.Submit) -> Expr:
        return self._default_expr(op)

    def visit_make_tuple(self, op: x.MakeTuple) -> Expr:
        return self._default_expr(op)

    def visit_tuple_get_item_expr(self, op: x.TupleGetItemExpr) -> Expr:
        return self._default_expr(op)

    def visit_binary_expr(self, op: x.BinaryExpr) -> Expr:
        """What the methods of two-operand operators call unless overridden."""
        return self._default_expr(op)

    def visit_add(self, op: x.Add) -> Expr:
        return self.visit_binary_expr(op)

    def visit_sub(self, op: x.Sub) -> Expr:
        return self.visit_binary_expr(op)

    def visit_mul(self, op: x.Mul) -> Expr:
        return self.visit_binary_expr(op)

    def visit_floor_div(self, op: x.FloorDiv) -> Expr:
        return self.visit_binary_expr(op)

    def visit_floor_mod(self, op: x.FloorMod) -> Expr:
        return self.visit_binary_expr(op)

    def visit_float_div(self, op: x.FloatDiv) -> Expr:
        return self.visit_binary_expr(op)

    def visit_min(self, op: x.Min) -> Expr:
        return self.visit_binary_expr(op)

    def visit_max(self, op: x.Max) -> Expr:
        return self.visit_binary_expr(op)

    def visit_pow(self, op: x.Pow) -> Expr:
        return self.visit_binary_expr(op)

    def visit_eq(self, op: x.Eq) -> Expr:
        return self.visit_binary_expr(op)

    def visit_ne(self, op: x.Ne) -> Expr:
        return self.visit_binary_expr(op)

    def visit_lt(self, op: x.Lt) -> Expr:
        return self.visit_binary_expr(op)

    def visit_le(self, op: x.Le) -> Expr:
        return self.visit_binary_expr(op)

    def visit_gt(self, op: x.Gt) -> Expr:
        return self.visit_binary_expr(op)

    def visit_ge(self, op: x.Ge) -> Expr:
        return self.visit_binary_expr(op)

    def visit_and(self, op: x.And) -> Expr:
        return self.visit_binary_expr(op)

    def visit_or(self, op: x.Or) -> Expr:
        return self.visit_binary_expr(op)

    def visit_xor(self, op: x.Xor) -> Expr:
        return self.visit_binary_expr(op)

    def visit_bit_and(self, op: x.BitAnd) -> Expr:
        return self.visit_binary_expr(op)

    def visit_bit_or(self, op: x.BitOr) -> Expr:
        return self.visit_binary_expr(op)

    def visit_bit_xor(self, op: x.BitXor) -> Expr:
        return self.visit_binary_expr(op)

    def visit_bit_shift_left(self, op: x.BitShiftLeft) -> Expr:
        return self.visit_binary_expr(op)

    def visit_bit_shift_right(self, op: x.BitShiftRight) -> Expr:
        return self.visit_binary_expr(op)

    def visit_unary_expr(self, op: x.UnaryExpr) -> Expr:
        """What the methods of one-operand operators call unless overridden."""
        return self._default_expr(op)

    def visit_abs(self, op: x.Abs) -> Expr:
        return self.visit_unary_expr(op)

    def visit_neg(self, op: x.Neg) -> Expr:
        return self.visit_unary_expr(op)

    def visit_not(self, op: x.Not) -> Expr:
        return self.visit_unary_expr(op)

    def visit_bit_not(self, op: x.BitNot) -> Expr:
        return self.visit_unary_expr(op)

    def visit_cast(self, op: x.Cast) -> Expr:
        return self.visit_unary_expr(op)

    # --- statements ---

    def visit_assign_stmt(self, op: s.AssignStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_if_stmt(self, op: s.IfStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_yield_stmt(self, op: s.YieldStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_return_stmt(self, op: s.ReturnStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_for_stmt(self, op: s.ForStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_while_stmt(self, op: s.WhileStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_seq_stmts(self, op: s.SeqStmts) -> Stmt:
        return self._default_stmt(op)

    def visit_eval_stmt(self, op: s.EvalStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_break_stmt(self, op: s.BreakStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_continue_stmt(self, op: s.ContinueStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_inline_stmt(self, op: s.InlineStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_in_core_scope_stmt(self, op: s.InCoreScopeStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_cluster_scope_stmt(self, op: s.ClusterScopeStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_hierarchy_scope_stmt(self, op: s.HierarchyScopeStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_spmd_scope_stmt(self, op: s.SpmdScopeStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_split_aiv_scope_stmt(self, op: s.SplitAivScopeStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_runtime_scope_stmt(self, op: s.RuntimeScopeStmt) -> Stmt:
        return self._default_stmt(op)

    def visit_comm_domain_scope_stmt(self, op: s.CommDomainScopeStmt) -> Stmt:
        return self._default_stmt(op)
