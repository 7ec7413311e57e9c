"""Rewrite 1 of OptimizeOrchTensors: a kernel's output is written into an input that nobody needs any more.

A kernel's pair of an In and an Out parameter of one type becomes one InOut parameter, if that is worth while and right.

Worth while: some call is the step of a carry (its input is the carry of the loop, its result is yielded to it), or the
kernel takes its whole input into a tile that a loop of its own carries and stores in the end.

Right, of the kernel: all reads of the input come before all writes of the output, in no loop together, and nothing
else happens to the input. Right, of *every* call of the kernel, since the kernel is one for all:

* the output is a buffer that is made for this call (or by the runtime);
* the input is a buffer that the caller made, whole, and that is not seen by any name behind the call, except as the
  call's result. In a loop the buffer is made in the same iteration, or it is what the loop carries;
* no other task reads the input. The runtime does not make a writer wait for earlier readers, so such a task could see
  what the call writes.

A parameter of the caller is overwritten only if it is declared as written (``pl.InOut``, ``pl.Out``), the carry or call
is all that happens to it, and the outcome is not returned: who calls the program would no longer get it as a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...analysis.callees import argument_index, callees_of
from ...analysis.constants import constant_int
from ...ir.enums import FunctionType, ParamDirection
from ...ir.expr import IterArg, MakeTuple, Submit, TupleGetItemExpr, Var
from ...ir.mutator import IRMutator
from ...ir.node import FrozenDict, FrozenList
from ...ir.operands import is_launch, is_op
from ...ir.program import Function, Program
from ...ir.stmt import AssignStmt, ForStmt, SeqStmts, Stmt, WhileStmt
from ...ir.substitution import substitute
from ...ir.type import TensorType, extents_equal
from ...verify.call_sites import call_sites
from .uses import ARGUMENT, INITIAL, MENTIONED, NAMED, RETURNED, YIELDED, Facts, Use

_CALLERS = frozenset((FunctionType.Orchestration, FunctionType.Opaque))
# Kernels of which the text does not say all, or that run in another way than it reads.
_OPAQUE_ATTRS = ("external_source", "deferred_completion_waiter", "split_aiv", "split", "dual_aiv_dispatch")
# What an orchestration does with a tensor itself, waiting for who writes it. It is over before the next statement.
_SYNCHRONOUS = frozenset(("tensor.read", "tensor.dim"))
_HOPS = 16
# A buffer with more names than that is left alone: each call looks at all of them.
_NAMES = 128

# Parameters of a kernel: the input that is written from now on, and the output that goes.
Pair = tuple[int, int]


def write_in_place(program: Program) -> Program:
    """The program with all such pairs merged."""
    while True:
        merges = _Search(program).run()
        if not merges.pairs:
            return program
        program = _apply(program, merges)


class _Merges:
    """What to merge. ``pairs``: kernel -> its pairs; ``creates``: statements that make a buffer that is not needed."""

    def __init__(self) -> None:
        self.pairs: dict[str, list[Pair]] = {}
        self.creates: set[Stmt] = set()


class _Site:
    """A call of a kernel. ``stmt`` assigns its result."""

    __slots__ = ("call", "facts", "stmt")

    def __init__(self, call: Any, stmt: Any, facts: Facts) -> None:
        self.call = call
        self.stmt = stmt
        self.facts = facts


class _Search:
    def __init__(self, program: Program) -> None:
        self._functions = program.functions.values()
        self._callees = callees_of(program)
        self._sites: dict[str, list[_Site] | None] = {}

    def run(self) -> _Merges:
        merges = _Merges()
        kernels = {f.name: (f, pairs) for f in self._functions if (pairs := _possible_pairs(f))}
        if kernels:
            self._collect(kernels)
        for name, (kernel, pairs) in kernels.items():
            taken: set[int] = set()
            facts: Facts | None = None
            for pair in pairs:
                if taken.intersection(pair) or not self._sites.get(name):
                    continue
                creates = self._creates(kernel, pair)
                if creates is None:
                    continue
                facts = facts or Facts(kernel, self._callees)
                if not self._is_worthwhile(kernel, facts, pair) or not _reads_first(facts, pair):
                    continue
                merges.pairs.setdefault(name, []).append(pair)
                merges.creates.update(creates)
                taken.update(pair)
        return merges

    def _collect(self, kernels: Any) -> None:
        """The calls of these kernels. None for one that is called where nothing can be changed."""
        for function in self._functions:
            found = call_sites(function)
            if kernels.keys().isdisjoint(found.callees):
                continue
            facts = Facts(function, self._callees) if function.func_type in _CALLERS else None
            for name, sites in found.callees.items():
                if name not in kernels:
                    continue
                if facts is None or any(site.code is not None or type(site.stmt) is not AssignStmt for site in sites):
                    self._sites[name] = None
                elif (known := self._sites.setdefault(name, [])) is not None:
                    known += [_Site(site.call, site.stmt, facts) for site in sites]

    def _creates(self, kernel: Function, pair: Pair) -> list[Stmt] | None:
        """The statements that make the outputs of a pair, over all calls; None if some call does not allow it."""
        result = self._result(kernel, pair)
        if result is None:
            return None
        found: list[Stmt] = []
        for site in self._sites[kernel.name] or ():
            create = _output_made_for(site, kernel, pair)
            if create is False or not _Caller(site, kernel, pair, result).allows():
                return None
            if create is not None:
                found.append(create)
        return found

    def _result(self, kernel: Function, pair: Pair) -> int | None:
        """The position of the output among the results."""
        returned = self._callees.returned_params(kernel) or ()
        if returned.count(pair[1]) != 1 or pair[0] in returned:
            return None
        return returned.index(pair[1])

    def _is_worthwhile(self, kernel: Function, facts: Facts, pair: Pair) -> bool:
        result = self._result(kernel, pair)
        assert result is not None
        sites = self._sites[kernel.name] or ()
        return _carries_input(facts, pair) or any(
            _Caller(site, kernel, pair, result).carry() is not None for site in sites
        )


def _possible_pairs(function: Function) -> list[Pair]:
    """Pairs of an In and an Out parameter of one type."""
    if function.func_type is not FunctionType.InCore or any(function.attrs.get(key) for key in _OPAQUE_ATTRS):
        return []
    inputs: dict[Any, list[int]] = {}
    found = []
    for i, (param, direction) in enumerate(zip(function.params, function.param_directions, strict=True)):
        if type(param.type) is TensorType and direction is ParamDirection.In:
            inputs.setdefault(param.type, []).append(i)
    for o, (param, direction) in enumerate(zip(function.params, function.param_directions, strict=True)):
        if type(param.type) is TensorType and direction is ParamDirection.Out:
            found += [(i, o) for i in inputs.get(param.type, ())]
    return found


# --- the kernel -------------------------------------------------------------------------------------------------------


def _reads_first(facts: Facts, pair: Pair) -> bool:
    """Whether a kernel has read all that it reads of its input before it writes its output."""
    params, uses = facts.function.params, facts.uses
    if uses.opaque:
        return False
    reads = [use for var in facts.other_names([params[pair[0]]]) for use in uses.of.get(var, ())]
    writes = [use for var in facts.other_names([params[pair[1]]]) for use in uses.of.get(var, ())]
    if any(use.kind == RETURNED for use in reads) or not writes:
        return False
    last = max((use.position for use in reads), default=0)
    first = min(use.position for use in writes)
    return last < first and not any(begin < last and first <= end for begin, end in uses.extent.values())


def _carries_input(facts: Facts, pair: Pair) -> bool:
    """Whether what a kernel stores comes, through a loop of its own, from a load of its whole input."""
    source, target = (facts.function.params[i] for i in pair)
    results = {
        var: loop.iter_args[i].initValue
        for loop in facts.uses.extent
        if isinstance(loop, (ForStmt, WhileStmt))
        for i, var in enumerate(loop.return_vars)
    }
    for var in facts.other_names([target]):
        for use in facts.uses.of.get(var, ()):
            if use.kind == ARGUMENT and use.index == 2 and is_op(use.node, "tile.store"):
                value, hops = use.node.args[0], 0
                while value in results and hops < _HOPS:
                    value, hops = results[value], hops + 1
                load = facts.uses.assigned.get(value)
                if hops and load is not None and _is_whole_load(load.value, source):
                    return True
    return False


def _is_whole_load(call: Any, source: Var) -> bool:
    if not is_op(call, "tile.load") or call.args[0] is not source:
        return False
    tuples = call.args[1:]
    if not all(type(e) is MakeTuple for e in tuples):
        return False
    shape = source.type.shape
    if any(constant_int(dim) is None for dim in shape) or any(constant_int(at) != 0 for at in tuples[0].elements):
        return False
    return all(extents_equal(e.elements, shape) for e in tuples[1:])


# --- a call -----------------------------------------------------------------------------------------------------------


def _output_made_for(site: _Site, kernel: Function, pair: Pair) -> Any:
    """The statement that makes the output of a call; None if the runtime makes it; False if it is not made for it."""
    call, uses = site.call, site.facts.uses
    at = argument_index(kernel.params, len(call.args), pair[1])
    if at is None:
        return None
    create = uses.assigned.get(call.args[at])
    if create is None or not is_op(create.value, "tensor.create"):
        return False
    options = create.value.kwargs  # type: ignore[attr-defined]
    if options.get("init_value") is not None or options.get("manual_dep"):
        return False
    if uses.loop_of[create] is not uses.loop_of[site.stmt] or not _lies_like(create.var, kernel.params[pair[1]]):
        return False
    own = [use for use in uses.of[create.var] if not use.is_(ARGUMENT, call, at)]
    return create if all(_is_dump(use, call) for use in own) else False


def _lies_like(argument: Var, param: Var) -> bool:
    """Whether a tensor lies in its buffer as a parameter says. (That the shapes fit is known.)"""
    kind: Any = argument.type
    return type(kind) is TensorType and kind.tensor_view == param.type.tensor_view  # type: ignore[attr-defined]


def _is_dump(use: Use, call: Any) -> bool:
    return use.kind == MENTIONED and use.node is call


def _is_synchronous(use: Use) -> bool:
    return use.kind == ARGUMENT and not is_launch(use.node) and use.node.op.name in _SYNCHRONOUS


def _slot(loop: Any, value: Any) -> int | None:
    """The carry of a loop that a value is."""
    args = loop.iter_args if loop is not None else ()
    return next((i for i, arg in enumerate(args) if arg is value), None)


class _Carry:
    """A carry of a loop. ``source``: what it begins with."""

    __slots__ = ("loop", "slot")

    def __init__(self, loop: Any, slot: int) -> None:
        self.loop = loop
        self.slot = slot

    @property
    def arg(self) -> IterArg:
        return self.loop.iter_args[self.slot]  # type: ignore[no-any-return]

    @property
    def result(self) -> Var:
        return self.loop.return_vars[self.slot]  # type: ignore[no-any-return]

    @property
    def source(self) -> Any:
        return self.arg.initValue


class _Caller:
    """One call and its caller: whether the input may be overwritten."""

    def __init__(self, site: _Site, kernel: Function, pair: Pair, result: int) -> None:
        self._call = site.call
        self._stmt = site.stmt
        self._facts = site.facts
        self._uses = site.facts.uses
        self._result = result
        self._kernel = kernel
        self._input = kernel.params[pair[0]]
        self._indices = [argument_index(kernel.params, len(site.call.args), i) for i in pair]
        at = self._indices[0]
        self._value: Any = site.call.args[at] if at is not None else None

    def allows(self) -> bool:
        call, value = self._call, self._value
        if not isinstance(value, Var) or not _lies_like(value, self._input):
            return False
        if call.attrs.get("arg_directions") or call.attrs.get("core_num") is not None:
            return False
        if type(call) is Submit and call.core_num is not None:
            return False  # blocks run side by side: one may write what another has still to read
        if not set(call.attrs.get("arg_direction_overrides", ())).isdisjoint(self._indices):
            return False
        carry = self.carry()
        if carry is None:
            return not isinstance(value, IterArg) and self._is_dead(value, self._uses.loop_of[self._stmt], None)
        carry = self._outermost(carry)
        return carry is not None and self._is_dead(carry.source, self._uses.loop_of[carry.loop], carry)

    # --- carries ---

    def carry(self) -> _Carry | None:
        """The carry that the input is, if the result is yielded to it and neither is used in any other way."""
        loop, value = self._uses.loop_of[self._stmt], self._value
        slot = _slot(loop, value)
        if slot is None:
            return None
        result = self._result_var()
        if result is None or not self._only(result, YIELDED, loop, slot):
            return None
        end = self._position()
        others = [use for use in self._uses.of[value] if not self._is_own(use)]
        if any(not _is_synchronous(use) or use.position > end for use in others):
            return None
        return _Carry(loop, slot)

    def _is_own(self, use: Use) -> bool:
        """Whether a use is what the call itself does with its input."""
        return use.is_(ARGUMENT, self._call, self._indices[0] or 0) or _is_dump(use, self._call)

    def _position(self) -> int:
        return self._uses.defined[self._stmt.var]

    def _result_var(self) -> Var | None:
        """The one variable that holds the result."""
        var = self._stmt.var
        if isinstance(var.type, TensorType):
            return var  # type: ignore[no-any-return]
        elements = [use.stmt for use in self._uses.of.get(var, ()) if use.kind == NAMED and use.index == self._result]
        return elements[0].var if len(elements) == 1 and self._is_taken_apart(self._stmt) else None

    def _only(self, var: Var, kind: int, node: Any, index: int) -> bool:
        """Whether a variable is used in this way once, and otherwise only looked at by the caller itself."""
        uses = [use for use in self._uses.of.get(var, ()) if not _is_synchronous(use)]
        return len(uses) == 1 and uses[0].is_(kind, node, index)

    def _outermost(self, carry: _Carry) -> _Carry | None:
        """The carry of the outermost loop that only hands it in and takes it out again."""
        while True:
            outer, source = self._uses.loop_of[carry.loop], carry.source
            slot = _slot(outer, source)
            if slot is None:
                return carry
            uses = [use for use in self._uses.of[source] if not use.is_(INITIAL, carry.loop, carry.slot)]
            start = self._uses.extent[carry.loop][0]
            if any(not _is_synchronous(use) or use.position > start for use in uses):
                return None
            if not self._only(carry.result, YIELDED, outer, slot):
                return None
            carry = _Carry(outer, slot)

    # --- the buffers ---

    def _is_dead(self, value: Any, loop: Any, carry: _Carry | None) -> bool:
        """Whether the buffers that a value may be are made in this iteration of ``loop``, and nobody but the call, or
        who goes on with the carry, can tell what becomes of them."""
        origins = self._facts.names.origins(value, _NAMES) if isinstance(value, Var) else None
        if not origins or any(not self._is_made_in(origin, loop, value, carry) for origin in origins):
            return False
        end = self._position() if carry is None else self._uses.extent[carry.loop][0]
        but = () if carry is None else (carry.arg, carry.result)
        for count, var in enumerate(self._facts.other_names(origins, but)):
            if count > _NAMES:
                return False
            for use in self._uses.of.get(var, ()):
                if carry is not None and use.is_(INITIAL, carry.loop, carry.slot):
                    continue
                if carry is None and self._is_own(use):
                    continue
                if use.position >= end or not self._is_harmless(use):
                    return False
        return True

    def _is_made_in(self, origin: Var, loop: Any, value: Var, carry: _Carry | None) -> bool:
        """Whether the caller may do with a buffer what it likes, in one iteration of a loop."""
        function = self._facts.function
        for param, direction in zip(function.params, function.param_directions, strict=True):
            if param is origin:
                written = direction is not ParamDirection.In and len(self._uses.of[param]) == 1 and value is param
                return loop is None and written and not self._is_returned(carry)
        stmt = self._uses.assigned.get(origin)
        if stmt is None or not self._uses.inside(self._uses.defined[origin], loop):
            return False
        made: Any = stmt.value
        if is_op(made, "tensor.create"):
            return not made.kwargs.get("manual_dep")
        return is_launch(made) or type(made) is TupleGetItemExpr

    def _is_returned(self, carry: _Carry | None) -> bool:
        """Whether the function may return what the call or carry gives: it would be its own parameter then, which is
        not handed back as a result."""
        result = self._result_var() if carry is None else carry.result
        if result is None:
            return True
        names = self._facts.other_names([result])
        return any(use.kind == RETURNED for var in names for use in self._uses.of.get(var, ()))

    def _is_harmless(self, use: Use) -> bool:
        """Whether an earlier use of a buffer is over, or waited for, when the call begins to write."""
        if use.kind in (NAMED, INITIAL, YIELDED) or _is_synchronous(use):
            return True
        if use.kind != ARGUMENT or not is_launch(use.node):
            return False
        if use.index in use.node.attrs.get("arg_direction_overrides", ()) or not self._is_taken_apart(use.stmt):
            return False
        if use.node.op.name == self._kernel.name and use.index == self._indices[0]:
            return True  # it will be written there
        return self._facts.callees.direction(use.node, use.index) is not ParamDirection.In

    def _is_taken_apart(self, stmt: Any) -> bool:
        """Whether nothing is done with a tuple of results but to take its elements. (Else names may escape.)"""
        if type(stmt) is not AssignStmt or isinstance(stmt.var.type, TensorType):
            return True
        return all(type(use.node) is TupleGetItemExpr for use in self._uses.of.get(stmt.var, ()))


# --- the rewrite ------------------------------------------------------------------------------------------------------


def _apply(program: Program, merges: _Merges) -> Program:
    kernels = {f.name: f for f in program.functions.values() if f.name in merges.pairs}
    functions = []
    for function in program.functions.values():
        if function.name in kernels:
            function = _merged(function, merges.pairs[function.name])
        if not kernels.keys().isdisjoint(call_sites(function).callees):
            function = function.replace(body=_Calls(merges, kernels).visit_stmt(function.body))
        functions.append(function)
    return program.with_functions(functions)


def _merged(kernel: Function, pairs: Iterable[Pair]) -> Function:
    params, directions = list(kernel.params), list(kernel.param_directions)
    for kept, _ in pairs:
        directions[kept] = ParamDirection.InOut
    body = substitute(kernel.body, [(params[gone], params[kept]) for kept, gone in pairs])
    left = [i for i in range(len(params)) if i not in {gone for _, gone in pairs}]
    return kernel.replace(
        params=FrozenList(params[i] for i in left),
        param_directions=FrozenList(directions[i] for i in left),
        body=body,
    )


class _Calls(IRMutator):
    """Calls without the outputs that are gone."""

    def __init__(self, merges: _Merges, kernels: dict[str, Function]) -> None:
        self._merges = merges
        self._kernels = kernels

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        if op in self._merges.creates:
            return SeqStmts([], op.span)
        call: Any = op.value
        if not is_launch(call) or call.op.name not in self._kernels:
            return op
        return op.replace(value=self._without(call))  # type: ignore[no-any-return]

    def _without(self, call: Any) -> Any:
        kernel = self._kernels[call.op.name]
        instead: dict[Any, Any] = {}
        gone: list[int] = []
        for kept, lost in self._merges.pairs[kernel.name]:
            at = argument_index(kernel.params, len(call.args), lost)
            if at is not None:
                gone.append(at)
                instead[call.args[at]] = call.args[argument_index(kernel.params, len(call.args), kept) or 0]
        args = [arg for i, arg in enumerate(call.args) if i not in gone]
        return call.replace(args=FrozenList(args), attrs=_attrs(call.attrs, gone, instead))


def _attrs(attrs: Any, gone: Sequence[int], instead: dict[Any, Any]) -> Any:
    """Attributes of a call without some of its arguments."""
    changed = {}
    if attrs.get("dump_vars"):
        changed["dump_vars"] = FrozenList(dict.fromkeys(instead.get(var, var) for var in attrs["dump_vars"]))
    if attrs.get("arg_direction_overrides"):
        changed["arg_direction_overrides"] = FrozenList(
            i - sum(1 for at in gone if at < i) for i in attrs["arg_direction_overrides"]
        )
    return FrozenDict({**attrs, **changed}) if changed else attrs


__all__ = ["write_in_place"]
