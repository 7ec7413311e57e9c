"""What differs between the passes that outline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from ...analysis.callees import Callees
from ...ir.enums import FunctionType, Level, Role
from ...ir.program import Function
from ...ir.stmt import ScopeStmt, Stmt

if TYPE_CHECKING:
    from .scan import ScopeInfo

HOST_SIDE = frozenset((FunctionType.Opaque, FunctionType.Orchestration, FunctionType.Graph))


class Policy:
    """How one pass outlines: which scopes of which functions, into what."""

    visits: ClassVar[frozenset[FunctionType]] = HOST_SIDE
    scopes: ClassVar[frozenset[type[ScopeStmt]]]
    # A scope inside another one of the pass becomes a function, too.
    nests: ClassVar[bool] = False
    # A written tensor is a result only where it is read later.
    exports_only_what_is_read: ClassVar[bool] = False
    # A store that is a statement of its own gives its target a name.
    names_stores: ClassVar[bool] = True
    # Attributes of a function that those of its scopes get as well.
    inherited_attrs: ClassVar[tuple[str, ...]] = ()

    def check_function(self, function: Function) -> None:
        """Refuse a function that has scopes to outline."""

    def check_scope(self, info: ScopeInfo, function: Function) -> None:
        """Refuse a scope."""

    def suffix(self, scope: Any) -> str:
        """What the name of an unnamed scope's function says between the function around it and the number."""
        raise NotImplementedError

    def func_type(self, scope: Any) -> FunctionType:
        """The kind of function that a scope becomes."""
        raise NotImplementedError

    def place(self, scope: Any) -> tuple[Level | None, Role | None]:
        """Level and role of that function, where the kind does not imply them."""
        return None, None

    def body(self, scope: Any) -> Stmt:
        """The body of that function."""
        return scope.body  # type: ignore[no-any-return]

    def function_attrs(self, info: ScopeInfo) -> Mapping[str, Any]:
        """Attributes of that function."""
        return {}

    def launch_scope(self, scope: Any) -> Any:
        """The scope that says how wide the function is launched, or None."""
        return None

    def no_dep_inputs(self, info: ScopeInfo) -> list[Any]:
        """Tensors from outside that the body passes on without ordering, so that the launch has to do so, too."""
        return []

    def gives_nothing(self, info: ScopeInfo) -> bool:
        """Whether the scope has no results at all."""
        return False

    def finish(self, function: Function, callees: Callees) -> Function:
        """Last changes to a function whose scopes were outlined; their functions are among the callees."""
        return function
