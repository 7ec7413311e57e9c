"""``@pl.jit.extern``: a stub that stands for a hand-written C++ kernel."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..frontend.context import Signature
from ..frontend.function_parser import FunctionOptions
from ..ir.enums import FunctionType, ParamDirection
from ..ir.expr import Call, Expr, Var
from ..ir.node import FrozenList
from ..ir.program import Function
from ..ir.span import Span
from ..ir.stmt import AssignStmt, EvalStmt, ReturnStmt, SeqStmts, Stmt
from ..ir.type import TupleType, Type, UnknownType

if TYPE_CHECKING:
    from .decorator import JITFunction
    from .specialize import Spec, Specializer

CORE_TYPES = ("aic", "aiv", "mixed")
_MEMBERS = {"aic": FunctionType.AIC, "aiv": FunctionType.AIV}
_QUOTED_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


class ExternalKernel:
    """Where the code of an external kernel lies: ``sources`` maps ``aic``/``aiv`` to a file."""

    __slots__ = ("core_type", "dual_aiv_dispatch", "include_dirs", "sources")

    def __init__(
        self, core_type: str, sources: dict[str, str], dual_aiv_dispatch: bool, include_dirs: Sequence[str]
    ) -> None:
        self.core_type = core_type
        self.sources = sources
        self.dual_aiv_dispatch = dual_aiv_dispatch
        self.include_dirs = list(include_dirs)

    def digest(self) -> str:
        """Of everything that decides the kernel's code; read anew at each call, since files change."""
        digest = hashlib.sha256(f"{self.core_type}|{self.dual_aiv_dispatch}|{self.include_dirs}".encode())
        for member in sorted(self.sources):
            digest.update(member.encode())
            for path in self._closure(self.sources[member]):
                digest.update(Path(path).read_bytes())
        return digest.hexdigest()[:16]

    def _closure(self, source: str) -> list[str]:
        """A file and all that it includes by quoted names, in the order found."""
        found: dict[str, None] = {}
        pending = [source]
        while pending:
            path = pending.pop()
            if path in found:
                continue
            found[path] = None
            for name in _QUOTED_INCLUDE.findall(Path(path).read_bytes()):
                for folder in (os.path.dirname(path), *self.include_dirs):
                    candidate = os.path.normpath(os.path.join(folder, name.decode(errors="replace")))
                    if os.path.isfile(candidate):
                        pending.append(candidate)
                        break
        return list(found)


def external_kernel(
    func: Callable[..., Any],
    core_type: str,
    source: Any,
    aic_source: Any,
    aiv_source: Any,
    dual_aiv_dispatch: bool,
    include_dirs: Any,
) -> ExternalKernel:
    """Check the options of ``@pl.jit.extern``; relative paths are relative to the file of the stub."""
    name = f"@pl.jit.extern function '{func.__name__}'"
    if core_type not in CORE_TYPES:
        raise ValueError(f"{name}: core_type must be one of {', '.join(CORE_TYPES)}, got {core_type!r}")
    if dual_aiv_dispatch and core_type != "mixed":
        raise ValueError(f"{name}: dual_aiv_dispatch=True needs core_type='mixed'")
    if isinstance(include_dirs, (str, os.PathLike)):
        raise TypeError(f"{name}: include_dirs must be a list of directories, got one string")
    base = Path(func.__code__.co_filename).resolve().parent
    if core_type == "mixed":
        if aic_source is None or aiv_source is None:
            raise ValueError(f"{name}: core_type='mixed' needs both aic_source= and aiv_source=")
        given = {"aic": aic_source, "aiv": aiv_source}
    else:
        own, other = (aic_source, aiv_source) if core_type == "aic" else (aiv_source, aic_source)
        chosen = next((s for s in (source, own, other) if s is not None), None)
        if chosen is None:
            raise ValueError(f"{name}: source= is required")
        given = {core_type: chosen}
    sources = {member: _existing(base, path, os.path.isfile, f"{name}: source file") for member, path in given.items()}
    folders = [_existing(base, d, os.path.isdir, f"{name}: include directory") for d in include_dirs or ()]
    return ExternalKernel(core_type, sources, dual_aiv_dispatch, folders)


def _existing(base: Path, path: Any, exists: Callable[[str], bool], what: str) -> str:
    found = str(base / path)
    if not exists(found):
        raise ValueError(f"{what} not found: {path}")
    return found


def specialize_external(
    specializer: Specializer, function: JITFunction, name: str, specs: Sequence[Spec]
) -> list[Function]:
    """The functions of an external kernel; the last is the one to call."""
    kernel = function._extern
    assert kernel is not None
    attrs = {"extra_include_dirs": os.pathsep.join(kernel.include_dirs)} if kernel.include_dirs else {}

    def stub(member: str, member_name: str) -> Function:
        options = FunctionOptions(_MEMBERS[member], attrs=dict(attrs), external_source=kernel.sources[member])
        return specializer.parse_function(function, member_name, specs, options)

    if kernel.core_type != "mixed":
        return [stub(kernel.core_type, name)]
    members = [stub(member, specializer.unique_name(f"{name}_{member}")) for member in ("aic", "aiv")]
    return [*members, _group(specializer, name, members, kernel.dual_aiv_dispatch)]


def _group(specializer: Specializer, name: str, members: list[Function], dual: bool) -> Function:
    """A Group that calls both members and returns what the cube member does."""
    aic, aiv = members
    span = Span(f"<jit:{name}>", 1, 1)
    params = [Var(p.name_hint, p.type, p.span) for p in aic.params]

    def call(member: Function) -> Expr:
        types: list[Type] = list(member.return_types)
        kind = UnknownType() if not types else types[0] if len(types) == 1 else TupleType(types)
        return Call(specializer.context.global_var(member.name), FrozenList(params), {}, {}, kind, span)

    body: list[Stmt] = []
    if aic.return_types:
        value = call(aic)
        result = Var("result", value.type, span)
        body = [AssignStmt(result, value, span), EvalStmt(call(aiv), span), ReturnStmt(FrozenList([result]), span)]
    else:
        body = [EvalStmt(call(aic), span), EvalStmt(call(aiv), span)]
    return Function(
        name,
        list(zip(params, aic.param_directions, strict=True)),
        list(aic.return_types),
        SeqStmts(body, span),
        aic.span,
        FunctionType.Group,
        attrs={"dual_aiv_dispatch": True} if dual else None,
    )


def declared_outputs(signature: Signature) -> list[Type]:
    """What an external kernel without a result annotation returns: its first written parameter."""
    for param, direction in zip(signature.params, signature.directions, strict=True):
        if direction is not ParamDirection.In:
            return [param.type]
    return []


__all__ = ["CORE_TYPES", "ExternalKernel", "declared_outputs", "external_kernel", "specialize_external"]
