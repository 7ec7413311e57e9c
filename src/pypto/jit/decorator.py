"""``@pl.jit`` and its kinds: functions that are specialised, compiled and run when they are called."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..frontend.closure import MISSING
from ..ir.compile_options import OptimizationStrategy
from ..ir.enums import Level, ParamDirection
from ..ir.paused_gc import paused_gc
from ..ir.program import Program
from ..language.typing import DynVar, dynamic
from .cache import CacheKey, l2_lookup, l2_store, make_cache_key
from .graph import Graph, admits
from .messages import with_source_names
from .options import compile_arguments, context_choices, options_key, run_passes, uses_disk
from .parameters import Parameter, check_signature, parameters_of
from .scan import CallSite, Chain, Namespace, Scan, frozen, is_language

# The parser and the ops are loaded when something is specialised, so that decorating is cheap.
if TYPE_CHECKING:
    from .binding import Binder, Bound
    from .extern import ExternalKernel


class CacheInfo(NamedTuple):
    """What ``kernel.cache_info()`` tells."""

    hits: int
    misses: int
    currsize: int
    maxsize: int | None


class _Entry:
    """A cached compilation; the lock is held while it is made, so that one key is compiled once."""

    __slots__ = ("compiled", "key", "lock")

    def __init__(self, key: CacheKey) -> None:
        self.key = key
        self.lock = threading.Lock()
        self.compiled: Any = None


class JITFunction:
    """A function that the compiler specialises for each set of argument types and constants.

    Call it with arrays and numbers; :meth:`compile` gives the compiled program of a call, :meth:`lower` its IR after
    the passes, :meth:`specialize` its IR before them. Made by ``@pl.jit`` and its kinds.
    """

    __pypto_helper__ = True
    __name__: str
    __signature__: inspect.Signature
    _limit: int | None = None

    def __init__(
        self,
        func: Callable[..., Any],
        func_type: str = "orchestration",
        level: Level | None = None,
        auto_scope: bool = True,
        around: Mapping[str, Any] | None = None,
        extern: ExternalKernel | None = None,
    ) -> None:
        check_signature(func)
        functools.update_wrapper(self, func)
        self.__signature__ = inspect.signature(func)
        self._func = func
        self._func_type = func_type
        self._level = level
        self._auto_scope = auto_scope
        self._extern = extern
        self._namespace = Namespace(func, around)
        self._lock = threading.RLock()
        self._cache: OrderedDict[Any, _Entry] = OrderedDict()
        self._hits = self._misses = 0
        self._cached_scan: Scan | None = None
        self._cached_parameters: list[Parameter] | None = None
        self._cached_chains: list[Chain] | None = None
        self._cached_graph: tuple[Any, Graph, Binder] | None = None
        self._local_symbols: dict[str, DynVar] = {}

    def __repr__(self) -> str:
        return f"JITFunction({self.__name__!r}, func_type={self._func_type!r})"

    # --- facts about the source, found once ---------------------------------------------------------------------------

    def _scan(self) -> Scan:
        if self._cached_scan is None:
            self._cached_scan = Scan(self._func)
        return self._cached_scan

    def _parameters(self) -> list[Parameter]:
        if self._cached_parameters is None:
            self._cached_parameters = parameters_of(self._func, self._namespace.local_values())
        return self._cached_parameters

    def _chains(self) -> list[Chain]:
        """The outside names whose values a specialisation may depend on."""
        if self._cached_chains is None:
            scan, namespace = self._scan(), self._namespace
            found = []
            for chain in scan.chains:
                head = namespace.lookup(chain[0])
                if is_language(head) or (head is MISSING and (scan.is_local(chain[0]) or chain[0] in _BUILTINS)):
                    continue
                if scan.is_local(chain[0]) and not isinstance(namespace.resolve(chain), JITFunction):
                    continue
                found.append(chain)
            self._cached_chains = found
        return self._cached_chains

    def _callees(self) -> list[tuple[JITFunction, CallSite]]:
        """The helpers that the body calls, in the order of the text."""
        found = []
        for site in self._scan().calls:
            callee = self._namespace.resolve(site.chain)
            if isinstance(callee, JITFunction) and admits(self._func_type, callee._func_type):
                found.append((callee, site))
        return found

    def _declared_dynamic(self) -> dict[str, dict[int, DynVar]]:
        """The dimensions that annotations and ``bind_dynamic`` make dynamic."""
        scan = self._scan()
        result: dict[str, dict[int, DynVar]] = {}
        for name, dim, symbol in scan.binds:
            result.setdefault(name, {}).setdefault(dim, self._symbol(symbol, scan))
        for parameter in self._parameters():
            for dim, extent in enumerate(parameter.shape or ()):
                if isinstance(extent, DynVar):
                    result.setdefault(parameter.name, {}).setdefault(dim, extent)
        return result

    def _symbol(self, name: str, scan: Scan) -> DynVar:
        literal = scan.local_symbols.get(name)
        if literal is None:
            value = self._namespace.lookup(name)
            if isinstance(value, DynVar):
                return value
            literal = name
        for parameter in self._parameters():
            for extent in parameter.shape or ():
                if isinstance(extent, DynVar) and extent.name == literal:
                    return extent
        return self._local_symbols.setdefault(literal, dynamic(literal))

    # --- specialisation -----------------------------------------------------------------------------------------------

    def _fingerprint(self) -> tuple[Any, ...]:
        """The values of all outside names that this function and its helpers read."""
        result: list[Any] = []
        seen: set[JITFunction] = set()
        pending = [self]
        while pending:
            function = pending.pop()
            if function in seen:
                continue
            seen.add(function)
            result.append(function._auto_scope)
            if function._extern is not None:
                result.append(function._extern.digest())
            resolve = function._namespace.resolve
            for chain in function._cached_chains or function._chains():
                value = resolve(chain)
                if type(value) is JITFunction:
                    pending.append(value)
                result.append(frozen(value))
        return tuple(result)

    def _current(self) -> tuple[Any, Graph, Binder]:
        """Fingerprint, call graph and binder as of now."""
        fingerprint = self._fingerprint()
        known = self._cached_graph
        if known is not None and known[0] == fingerprint:
            return known
        with paused_gc():
            from .binding import Binder

        graph = Graph(self)
        binder = Binder(self.__name__, inspect.signature(self._func), self._parameters(), graph.dynamic_dims(self))
        known = self._cached_graph = (fingerprint, graph, binder)
        return known

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any], signature_mode: bool) -> tuple[Bound, Any, Graph]:
        fingerprint, graph, binder = self._current()
        if signature_mode and not args and not binder.any_array(kwargs.values()):
            return binder.from_signature(kwargs), fingerprint, graph
        return binder.sample(args, kwargs), fingerprint, graph

    def _require_entry(self) -> None:
        if self._func_type not in ("orchestration", "host"):
            raise TypeError(
                f"@pl.jit.{self._func_type} function '{self.__name__}' is a helper: call it from a @pl.jit function"
            )

    def _specialized(self, bound: Bound, graph: Graph) -> tuple[Program, dict[str, str]]:
        from .specialize import Specializer

        specializer = Specializer(self, graph)
        try:
            program = specializer.run(specializer.entry_specs(bound.items))
        except Exception as error:
            raise with_source_names(error, specializer.aliases)  # noqa: B904  (the same error)
        return program, specializer.aliases

    def specialize(self, *args: Any, **kwargs: Any) -> Program:
        """The program of a call before any pass."""
        self._require_entry()
        kwargs.pop("config", None)
        bound, _, graph = self._bind(args, kwargs, signature_mode=True)
        return self._specialized(bound, graph)[0]

    def specialized_source(self, *args: Any, **kwargs: Any) -> str:
        """The text of :meth:`specialize`."""
        return str(self.specialize(*args, **kwargs).as_python())

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """What a call specialises, with the constants it folds, and whether it is cached, or why not."""
        self._require_entry()
        options = options_key(kwargs.pop("config", None))
        bound, fingerprint, graph = self._bind(args, kwargs, signature_mode=True)
        from .explain import explained

        return explained(self, bound, fingerprint, graph, options)

    def lower(self, *args: Any, **kwargs: Any) -> Program:
        """The program of a call after the passes; writes no files.

        ``config`` is a ``RunConfig``; its compile options that concern passes are honoured.
        """
        self._require_entry()
        config = kwargs.pop("config", None)
        bound, _, graph = self._bind(args, kwargs, signature_mode=True)
        program, aliases = self._specialized(bound, graph)
        try:
            return run_passes(program, config)
        except Exception as error:
            raise with_source_names(error, aliases)  # noqa: B904

    # --- compiled calls -----------------------------------------------------------------------------------------------

    def compile(self, *args: Any, **kwargs: Any) -> Any:
        """The ``CompiledProgram`` of a call; equal calls get the same object.

        Without arrays the annotations decide; ``name=pl.RUNTIME`` leaves a scalar to the run. ``config`` is a
        ``RunConfig``.
        """
        self._require_entry()
        config = kwargs.pop("config", None)
        bound, fingerprint, graph = self._bind(args, kwargs, signature_mode=True)
        return self._compiled(bound, fingerprint, graph, config)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Specialise, compile or take from the cache, and run; arrays of ``Out`` parameters are written in place.

        Omitted ``Out`` arguments of known shape are allocated and returned. Without any of them the result is what the
        function returns, as from the compiled program.
        """
        self._require_entry()
        config = kwargs.pop("config", None)
        bound, fingerprint, graph = self._bind(args, kwargs, signature_mode=False)
        if not self._cache:
            from ..runtime.native_executor import expect_call

            expect_call(bound.values, config)
        compiled = self._compiled(bound, fingerprint, graph, config)
        for member in graph.members:
            if member._extern is not None:
                raise NotImplementedError(
                    f"external C++ kernel '{member.__name__}' cannot run on platform '{compiled.platform}'; "
                    f"the files of the compilation are in {compiled.output_dir}"
                )
        if not bound.allocated:
            return compiled(*bound.values, config=config)
        outputs = sum(p.direction is ParamDirection.Out for p in self._parameters())
        result = compiled.execute(bound.values, None, config, returning=len(bound.allocated) == outputs).result
        if result is not None:
            return result
        return bound.allocated[0] if len(bound.allocated) == 1 else tuple(bound.allocated)

    def _compiled(self, bound: Bound, fingerprint: Any, graph: Graph, config: Any) -> Any:
        options = options_key(config)
        key = (bound.key, fingerprint, options)
        entry = self._cache.get(key)
        if entry is not None and entry.compiled is not None:
            self._hits += 1
            if self._limit is not None:
                with self._lock:
                    if key in self._cache:
                        self._cache.move_to_end(key)
            return entry.compiled
        with self._lock:
            entry = self._cache.get(key)
            if entry is None:
                entry = self._cache[key] = _Entry(self._public_key(bound, graph, config, fingerprint))
        with entry.lock:
            if entry.compiled is not None:
                self._hits += 1
                return entry.compiled
            self._misses += 1
            try:
                with paused_gc():  # it also loads the compiler, whose objects stay
                    entry.compiled = self._compile(bound, graph, config, entry.key)
            except BaseException:
                with self._lock:
                    if self._cache.get(key) is entry:
                        del self._cache[key]
                raise
        self._trim()
        return entry.compiled

    def _compile(self, bound: Bound, graph: Graph, config: Any, key: CacheKey) -> Any:
        from .. import ir

        on_disk = uses_disk(config)
        stored = l2_lookup(key) if on_disk else None
        if stored is not None:
            from ..ir.compiled_program import CompiledProgram

            return CompiledProgram.from_dir(stored, platform=getattr(config, "platform", None))
        program, aliases = self._specialized(bound, graph)
        try:
            compiled = ir.compile(program, **compile_arguments(config))  # type: ignore[operator]
        except Exception as error:
            raise with_source_names(error, aliases)  # noqa: B904
        if on_disk:
            l2_store(key, str(compiled.output_dir))
        return compiled

    # --- the cache ----------------------------------------------------------------------------------------------------

    def _public_key(self, bound: Bound, graph: Graph, config: Any, fingerprint: Any) -> CacheKey:
        """The documented key of a specialisation, with everything else that decides the result among its options."""
        shapes, dtypes, scalars, layouts = {}, {}, {}, {}
        names = []
        for parameter, item in zip(self._parameters(), bound.items, strict=True):
            names.append(parameter.name)
            if isinstance(item, tuple):
                shapes[parameter.name], dtypes[parameter.name] = item
                if parameter.layout is not None:
                    layouts[parameter.name] = parameter.layout
            elif item is not MISSING:
                scalars[parameter.name] = item
        dims = [(name, dim) for name, found in graph.dynamic_dims(self).items() for dim in found]
        planner, double_buffer, runtime = context_choices(config)
        return make_cache_key(
            graph.source_hash,
            names,
            shapes,
            dtypes,
            dims,
            scalars,
            platform=getattr(config, "platform", None),
            strategy=getattr(config, "strategy", None) or OptimizationStrategy.Default,
            distributed_config=getattr(config, "distributed_config", None),
            analyze_auto_scopes_for_deps=bool(getattr(config, "analyze_auto_scopes_for_deps", False)),
            dump_ptoas_passes=bool(getattr(config, "dump_ptoas_passes", False)),
            memory_planner=planner,
            enable_pypto_l0c_double_buffer=double_buffer,
            tensor_layouts=layouts,
            dep_layouts=graph.dep_layouts,
            runtime=runtime,
            extra=[("constants", fingerprint), ("options", options_key(config))],
        )

    def _trim(self) -> None:
        limit = self._limit
        if limit is None:
            return
        with self._lock:
            for key in list(self._cache):
                if len(self._cache) <= limit:
                    break
                if self._cache[key].compiled is not None:
                    del self._cache[key]

    def cache_info(self) -> CacheInfo:
        """Hits, misses, current and greatest size of this function's cache."""
        return CacheInfo(self._hits, self._misses, len(self._cache), self._limit)

    def cache_clear(self) -> None:
        """Forget all compiled programs of this function."""
        with self._lock:
            self._cache.clear()
            self._hits = self._misses = 0

    def cache_keys(self) -> list[CacheKey]:
        """The keys of the cached compilations, oldest first."""
        with self._lock:
            return [entry.key for entry in self._cache.values()]


_BUILTINS = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)

# --- the decorators ---------------------------------------------------------------------------------------------------


def _around(func: Any, depth: int) -> Mapping[str, Any] | None:
    """Local names at the ``def``, needed only where annotations are text: text makes no closure."""
    if not any(isinstance(a, str) for a in getattr(func, "__annotations__", {}).values()):
        return None
    frame = sys._getframe(depth)
    return dict(frame.f_locals) if frame.f_locals is not frame.f_globals else None


class _Kind:
    """One decorator: ``@pl.jit.incore`` or ``@pl.jit.incore(level=...)``."""

    def __init__(self, name: str, func_type: str, takes_level: bool, takes_auto_scope: bool, doc: str) -> None:
        self._name = name
        self._func_type = func_type
        self._takes_level = takes_level
        self._takes_auto_scope = takes_auto_scope
        self.__doc__ = doc

    def __call__(self, func: Callable[..., Any] | None = None, **options: Any) -> Any:
        level, auto_scope = options.pop("level", MISSING), options.pop("auto_scope", MISSING)
        if level is not MISSING and not self._takes_level:
            raise TypeError(f"@{self._name} does not accept a level= argument")
        if auto_scope is not MISSING and not self._takes_auto_scope:
            raise TypeError(
                f"@{self._name} does not accept an auto_scope= argument (only an entry and inline functions place "
                "runtime scopes)"
            )
        if options:
            raise TypeError(f"@{self._name} got an unexpected keyword argument '{next(iter(options))}'")
        if level is not MISSING and level is not None and not isinstance(level, Level):
            raise TypeError(f"@{self._name}: level= must be a pl.Level, got {type(level).__name__}")
        if auto_scope is not MISSING and not isinstance(auto_scope, bool):
            raise TypeError(f"@{self._name}: auto_scope= must be a bool, got {type(auto_scope).__name__}")

        def decorate(target: Callable[..., Any], depth: int = 2) -> JITFunction:
            return JITFunction(
                target,
                self._func_type,
                None if level is MISSING else level,
                auto_scope is MISSING or auto_scope,
                _around(target, depth),
            )

        return decorate if func is None else decorate(func, 3)

    def __repr__(self) -> str:
        return self._name


class _Extern:
    """``@pl.jit.extern(source=...)``: a stub with a ``...`` body for a hand-written C++ kernel.

    ``core_type`` is ``"aic"``, ``"aiv"`` or ``"mixed"``; a mixed kernel has ``aic_source`` and ``aiv_source``.
    """

    def __call__(
        self,
        func: Any = None,
        *,
        core_type: str = "aiv",
        source: Any = None,
        aic_source: Any = None,
        aiv_source: Any = None,
        dual_aiv_dispatch: bool = False,
        include_dirs: Any = None,
    ) -> Any:
        def decorate(target: Callable[..., Any], depth: int = 2) -> JITFunction:
            from .extern import external_kernel

            check_signature(target)
            kernel = external_kernel(target, core_type, source, aic_source, aiv_source, dual_aiv_dispatch, include_dirs)
            return JITFunction(target, "extern", around=_around(target, depth), extern=kernel)

        return decorate if func is None else decorate(func, 3)

    def __repr__(self) -> str:
        return "pl.jit.extern"


class _Jit(_Kind):
    """``pl.jit``: the decorator of entries; its attributes decorate helpers."""

    def __init__(self) -> None:
        super().__init__("pl.jit", "orchestration", False, True, "An entry: specialised, compiled and run when called.")
        self.host = _Kind("pl.jit.host", "host", False, True, "A distributed entry.")
        self.incore = _Kind("pl.jit.incore", "incore", True, False, "A kernel.")
        self.inline = _Kind("pl.jit.inline", "inline", False, True, "A helper that is spliced into its callers.")
        self.extern = _Extern()
        self.opaque = _Kind("pl.jit.opaque", "opaque", False, False, "A function of its own, with loops and scopes.")

    def cache_limit(self, limit: int | None) -> None:
        """How many compiled programs each jit function keeps (least recently used go first); None: all."""
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise ValueError(f"cache_limit must be a positive int or None, got {limit!r}")
        JITFunction._limit = limit


jit = _Jit()

__all__ = ["CacheInfo", "JITFunction", "jit"]
