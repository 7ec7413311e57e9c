"""What the scopes of a function take in, write and give, and which written tensors leave each loop and branch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...analysis.buffers import Buffers, Store
from ...analysis.callees import Callees
from ...diag.errors import InternalError
from ...ir.attrs import attr_expressions
from ...ir.call import Call, Submit
from ...ir.enums import ParamDirection
from ...ir.expr import Expr, Var
from ...ir.memref import MemRef, WindowBuffer
from ...ir.program import Function
from ...ir.stmt import (
    AssignStmt,
    ClusterScopeStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    ScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
)
from ...ir.traversal import CONSTANTS, attrs_expressions, child_fields
from ...ir.tree import free_vars, own_definitions, walk
from ...ir.type import TensorType, TileType
from ...ir.type_fields import PLAIN_TYPES, is_closed, type_expressions
from .policy import Policy


class Family:
    """The names of one written buffer in the function around the scopes.

    ``root`` is the name under which the first scope took it in; results of scopes that the user named join later.
    ``current`` is the variable that stands for all of them where the rewriting has arrived. One object that all names
    share, so that a chain of N scopes costs N steps.
    """

    __slots__ = ("current", "home", "last_use", "root")

    def __init__(self, root: Var, home: Stmt | None) -> None:
        self.root = root
        self.home = home  # the innermost loop or branch that defines it
        self.current: Any = root
        self.last_use = -1


class Target:
    """A written buffer as one scope sees it: the name from outside, and whether that itself is a destination."""

    __slots__ = ("direct", "var")

    def __init__(self, var: Var, direct: bool) -> None:
        self.var = var
        self.direct = direct


class ScopeInfo:
    """What is known of one scope.

    ``inputs``: variables from outside, in the order of first read. ``visible``: what its body defines for what
    follows. ``needed``: those of them that are used outside. ``targets``: written tensors from outside in the order of
    their first write, one for each family; ``aliases``: definitions that are further names of these, for what follows.
    ``repeated``: the written tensors from outside a loop around the scope, which the next iteration hands to it again.
    """

    __slots__ = (
        "aliases",
        "buffers",
        "direct_stores",
        "inner",
        "inputs",
        "is_last",
        "is_open",
        "needed",
        "only_waits",
        "outer",
        "parent_scope",
        "position",
        "repeated",
        "scope",
        "targets",
        "visible",
    )

    def __init__(self, scope: Any, outer: ScopeInfo | None, parent_scope: Stmt | None) -> None:
        self.scope = scope
        self.outer = outer
        self.parent_scope = parent_scope
        self.is_last = False
        self.is_open = False
        self.only_waits = False
        self.position = -1
        self.inputs: list[Var] = []
        self.visible: list[Var] = []
        self.needed: dict[Var, None] = {}
        self.buffers: Any = None
        self.targets: dict[Family, Target] = {}
        self.aliases: dict[Var, Family] = {}
        self.direct_stores: list[Store] = []
        self.repeated: set[Family] = set()
        self.inner: list[ScopeInfo | Construct] = []  # what is outlined inside it, and the loops around that


class Construct:
    """A loop or branch, or the whole function: the scopes and constructs in it, in order."""

    __slots__ = ("children", "stmt")

    def __init__(self, stmt: Stmt | None) -> None:
        self.stmt = stmt
        self.children: list[ScopeInfo | Construct] = []


class Scan:
    """One forward walk over a function.

    ``infos``: by scope; ``roots``: the written tensors, by the name under which a scope takes them in; ``carried``:
    loop or branch -> the written tensors that leave it, in the order of first touch; ``defined``: the variables that
    the function defines.
    """

    def __init__(self, function: Function, policy: Policy, callees: Callees, defined: Iterable[Var]) -> None:
        self.infos: dict[Stmt, ScopeInfo] = {}
        self.roots: dict[Var, Family] = {}
        self.carried: dict[Stmt, list[Family]] = {}
        self.defined = set(defined)
        self._families: dict[Var, Family] = {}  # by each name that has been met
        self._policy = policy
        self._callees = callees
        self._function = function
        self._scopes = policy.scopes
        self._home: dict[Var, Stmt | None] = {}
        self._loops = 0  # how many loops are around, and how many are around the enclosing scope
        self._loops_outside = 0
        self._loops_around: dict[Var, int] = {}  # how many are around the definition of a variable
        self._inside: dict[Var, ScopeInfo] = {}  # what a scope defines -> the innermost one that does
        self._events = 0
        self._outer: ScopeInfo | None = None
        self._parent_scope: Stmt | None = None
        self._construct = top = Construct(None)
        self._stmt(function.body, True)
        self._carry(top.children)

    # --- answers ------------------------------------------------------------------------------------------------------

    def exported(self, info: ScopeInfo) -> list[Family]:
        """The written tensors that are results of a scope, the one that was stored to last in front."""
        if self._policy.gives_nothing(info):
            return []
        found = reversed(info.targets)
        if self._policy.exports_only_what_is_read:
            return [family for family in found if self._is_read(family, info)]
        return list(found)

    def _is_read(self, family: Family, info: ScopeInfo) -> bool:
        """Whether anything reads a written tensor behind a scope: also its next run, or the return around it."""
        if family.last_use > info.position or family in info.repeated:
            return True
        outer = info.outer
        if outer is None:
            return False
        if family not in outer.targets:  # the body of the scope around has another name for what it takes in
            root = outer.buffers.root(family.root)
            # By its own name: that may have become another name of something further out meanwhile.
            family = next((known for known, target in outer.targets.items() if target.var is root), family)
        return family in outer.targets and self._is_read(family, outer)

    def given(self, info: ScopeInfo) -> list[Var]:
        """The definitions of a scope that others need, in order."""
        if self._policy.gives_nothing(info):
            return []
        if info.is_last and info.position == self._events and info.parent_scope is None:
            # Nothing follows and nobody asks: all that the body made. (A core can't give back scalars by itself.)
            stale = self.written_by_launches(info.scope.body)
            return [v for v in info.visible if v in info.needed or (v not in stale and self._at_hand(v, info))]
        return [v for v in info.visible if v in info.needed]

    def _at_hand(self, var: Var, info: ScopeInfo) -> bool:
        """Whether the end of a scope's body knows a tensor or tile, which can be named outside: scopes inside give only
        what is needed, and an extent that the body computes is a scalar."""
        innermost = self._inside[var]
        if not isinstance(var.type, (TensorType, TileType)) or not (innermost is info or var in innermost.needed):
            return False
        return not any(node in self._inside for e in type_expressions(var.type) for node in walk(e))

    def written_by_launches(self, body: Stmt) -> set[Any]:
        """The variables that a launch writes: the launch's result is the value, and the variable is a stale name."""
        return {
            arg
            for node in walk(body)
            if isinstance(node, (Call, Submit)) and self._callees.of(node) is not None
            for i, arg in enumerate(node.args)
            if isinstance(arg, Var) and self._callees.direction(node, i) is not ParamDirection.In
        }

    # --- uses ---------------------------------------------------------------------------------------------------------

    def _use(self, var: Any) -> None:
        self._events += 1
        family = self._families.get(var)
        if family is not None:
            family.last_use = self._events
        info = self._inside.get(var)
        while info is not None and not info.is_open:
            info.needed[var] = None
            info = info.outer

    def _uses(self, roots: Iterable[Any]) -> None:
        for root in roots:
            if type(root) in CONSTANTS:
                continue
            for node in walk(root):
                if not isinstance(node, Expr):
                    continue
                if isinstance(node, Var) and not isinstance(node, (MemRef, WindowBuffer)):
                    self._use(node)
                kind = node.type
                if type(kind) not in PLAIN_TYPES and not is_closed(kind):
                    self._uses(type_expressions(kind))

    # --- statements ---------------------------------------------------------------------------------------------------

    def _stmt(self, stmt: Any, last: bool) -> None:
        cls = type(stmt)
        if cls is AssignStmt:
            value = stmt.value
            if isinstance(value, Var) or child_fields(type(value)):
                self._uses((value,))
            self._defines((stmt.var,))
        elif cls is SeqStmts:
            end = len(stmt.stmts) - 1
            for i, inner in enumerate(stmt.stmts):
                self._stmt(inner, i == end)
        elif cls in self._scopes and (self._policy.nests or self._outer is None):
            self._scope(stmt, last)
        else:
            handler = _STATEMENTS.get(cls)
            if handler is not None:
                handler(self, stmt)
            elif isinstance(stmt, ScopeStmt):
                self._transparent(stmt)
            else:
                self._uses((stmt,))

    def _defines(self, variables: Iterable[Var]) -> None:
        home = self._construct.stmt
        for var in variables:
            self._home[var] = home
            self._loops_around[var] = self._loops
            kind = var.type
            if type(kind) not in PLAIN_TYPES and not is_closed(kind):
                self._uses(type_expressions(kind))

    def _enter(self, stmt: Stmt) -> Construct:
        outer = self._construct
        self._construct = inner = Construct(stmt)
        outer.children.append(inner)
        return outer

    def _if(self, stmt: IfStmt) -> None:
        self._uses((stmt.condition,))
        outer = self._enter(stmt)
        self._stmt(stmt.then_body, True)
        if stmt.else_body is not None:
            self._stmt(stmt.else_body, True)
        self._construct = outer
        self._defines(stmt.return_vars)

    def _loop(self, stmt: Any) -> None:
        self._uses(arg.initValue for arg in stmt.iter_args)
        if type(stmt) is ForStmt:
            self._uses((stmt.start, stmt.stop, stmt.step, *attrs_expressions(stmt.attrs)))
        outer = self._enter(stmt)
        self._loops += 1
        self._defines(stmt.iter_args)
        if type(stmt) is WhileStmt:
            self._uses((stmt.condition,))
        else:
            self._defines((stmt.loop_var,))
        self._stmt(stmt.body, True)
        self._loops -= 1
        self._construct = outer
        self._defines(stmt.return_vars)

    def _transparent(self, stmt: ScopeStmt) -> None:
        self._uses(_own_expressions(stmt))
        outer, self._parent_scope = self._parent_scope, stmt
        self._stmt(stmt.body, True)
        self._parent_scope = outer
        self._defines(own_definitions(stmt))

    # --- scopes -------------------------------------------------------------------------------------------------------

    def _scope(self, stmt: Any, last: bool) -> None:
        parent = self._parent_scope if isinstance(self._parent_scope, _FUNCTION_SCOPES) else None
        info = self.infos[stmt] = ScopeInfo(stmt, self._outer, parent)
        self._policy.check_scope(info, self._function)
        self._uses(_own_expressions(stmt))
        self._inputs(info)
        for var in info.inputs:
            self._use(var)
        info.buffers = Buffers(stmt.body, self._callees)
        self._targets(info)
        if self._policy.nests:
            self._nested(info)
        info.is_last, info.position = last, self._events
        _Definitions(info.visible).stmt(stmt.body)
        info.visible = list(dict.fromkeys(info.visible))  # a scope inside and the null id in front define one task id
        for var in info.visible:
            self._inside.setdefault(var, info)
            self._home[var] = self._construct.stmt
            self._loops_around[var] = self._loops
        self._check_redefinition(info)
        self._join(info)
        self._defines(own_definitions(stmt))
        self._construct.children.append(info)

    def _nested(self, info: ScopeInfo) -> None:
        """The scopes inside a scope: what they need and write stays inside, unless the outer one passes it on."""
        outer, construct, parent = self._outer, self._construct, self._parent_scope
        around, self._loops_outside = self._loops_outside, self._loops
        self._outer, info.is_open, self._parent_scope = info, True, info.scope
        self._construct = inner = Construct(construct.stmt)
        self._stmt(info.scope.body, True)
        self._outer, info.is_open, self._parent_scope = outer, False, parent
        self._construct, self._loops_outside = construct, around
        info.inner = inner.children

    def _inputs(self, info: ScopeInfo) -> None:
        found = free_vars(info.scope.body)
        symbols = [v for v in found if v not in self.defined]
        if symbols:
            # A symbol that a captured tensor declares comes with it; any other is a scalar like the rest.
            declared = {e for v in found if v in self.defined for e in getattr(v.type, "shape", ())}
            found = [v for v in found if v in self.defined or v not in declared]
        info.inputs = found

    def _targets(self, info: ScopeInfo) -> None:
        for store in info.buffers.stores:
            if not store.named:
                continue
            family = self._families.get(store.target)
            if family is None:
                family = Family(store.target, self._home.get(store.target))
                self._families[store.target] = self.roots[store.target] = family
            known = info.targets.get(family)
            if known is None or (store.direct and not known.direct):
                info.targets[family] = Target(store.target, store.direct)
                if max(self._loops_around.get(store.target, 0), self._loops_outside) < self._loops:
                    info.repeated.add(family)
            if store.direct:
                info.direct_stores.append(store)

    def _join(self, info: ScopeInfo) -> None:
        """Definitions that are a written tensor are further names of it."""
        for var in info.visible:
            if not isinstance(var.type, TensorType):
                continue
            root = info.buffers.root(var)
            family = self._families.get(root) if root is not None and root is not var else None
            if family is not None and family in info.targets:
                info.aliases[var] = self._families[var] = family

    def _check_redefinition(self, info: ScopeInfo) -> None:
        read = set(info.inputs)
        for var in info.visible:
            if var in read and var not in {store.target for store in info.direct_stores}:
                raise InternalError(
                    f"'{var.name_hint}' is read and then defined again in a scope of '{self._function.name}': "
                    f"outlining needs the form that ConvertToSSA gives [{info.scope.span}]"
                )

    # --- what leaves loops and branches -------------------------------------------------------------------------------

    def _carry(self, children: list[ScopeInfo | Construct]) -> dict[Family, None]:
        """The written tensors that leave scopes and constructs."""
        found: dict[Family, None] = {}
        for child in children:
            if isinstance(child, ScopeInfo):
                self._carry(child.inner)
                found.update(dict.fromkeys(self.exported(child)))
                continue
            # What the construct itself defines has no name outside; a carry of its own passes on what it is.
            leaving = [family for family in self._carry(child.children) if family.home is not child.stmt]
            if leaving and child.stmt is not None:
                self.carried[child.stmt] = leaving
            found.update(dict.fromkeys(leaving))
        return found


class _Definitions:
    """The variables that a body defines for what follows it."""

    def __init__(self, found: list[Var]) -> None:
        self._found = found

    def stmt(self, stmt: Any) -> None:
        cls = type(stmt)
        if cls is SeqStmts:
            for inner in stmt.stmts:
                self.stmt(inner)
        elif cls is IfStmt or cls is ForStmt or cls is WhileStmt:
            self._found += stmt.return_vars
        else:
            if isinstance(stmt, ScopeStmt):
                self.stmt(stmt.body)
            self._found += own_definitions(stmt)


_FUNCTION_SCOPES = (InCoreScopeStmt, ClusterScopeStmt, HierarchyScopeStmt, SpmdScopeStmt)


def _own_expressions(scope: Any) -> list[Any]:
    """What a scope reads where it is entered."""
    found = [e for key, value in scope.attrs.items() if key != "task_id_var" for e in attr_expressions(value)]
    if type(scope) is SpmdScopeStmt:
        found.insert(0, scope.core_num)
    return found


_STATEMENTS: dict[type, Callable[[Scan, Any], None]] = {
    IfStmt: Scan._if,
    ForStmt: Scan._loop,
    WhileStmt: Scan._loop,
}

__all__ = ["Family", "Scan", "ScopeInfo"]
