"""What every part of the generator stands on: the text, the names, and what each variable of the program is in C++."""

from __future__ import annotations

import functools
from typing import Any

from ...analysis.buffer_names import BufferNames
from ...analysis.callees import callees_of
from ...analysis.constants import constant_int
from ...diag.errors import InternalError
from ...ir.expr import Call, ConstInt, Expr, TupleGetItemExpr, Var
from ...ir.program import Function, Program
from ...ir.traversal import walk
from ...ir.tree import read_counts
from ...ir.type import CommCtxType, ScalarType, TensorType
from ..cpp_expressions import CppExpressions, unchecked
from ..names import Names
from ..runtime_names import RESERVED, RESERVED_PREFIXES, RuntimeNames, scalar_type
from ..scalar_expressions import ScalarExpressions
from ..text import Block, Group, Local, Writer


class Region:
    """A loop body or a branch of the program. What is defined in it does not exist behind it."""

    __slots__ = ("closed", "depth")

    def __init__(self, depth: int) -> None:
        self.closed = False
        self.depth = depth


class Parts:
    """The elements of a tuple: each a value, or None where there is none."""

    __slots__ = ("elements",)

    def __init__(self, elements: list[Any]) -> None:
        self.elements = elements


class Member:
    """What a launch gives back: ``.task_id()`` or ``.get_ref(k)`` of its outputs."""

    __slots__ = ("call", "outputs")

    def __init__(self, outputs: Local, call: str) -> None:
        self.outputs = outputs
        self.call = call


class Missing:
    """No value: why, for the error when somebody uses it after all."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message


class Manual:
    """A MANUAL scope whose own statements are being printed. ``front``: the place in front of its header."""

    __slots__ = ("block", "front")

    def __init__(self, block: Block, front: Group) -> None:
        self.block = block
        self.front = front


def _checked(e: Any, what: str) -> list[Any]:
    if what == "shift":
        return ["pto::distance(", e.right, ")"]
    if what == "power":
        return ["pto::exponent(", e.right, ")"]
    if what == "finite":
        return ["pto::finite(", e.operand, f', "{e.dtype}")']
    return ["pto::divisor(", e.right, f', "{what}")']


class Base:
    """The state of one generation.

    ``values``: what a variable of the program is: a C++ variable, or text that stands for it (a parameter, a literal),
    or the parts of a tuple. Several variables may be the same C++ variable, since results are other names of arguments.
    """

    def __init__(self, program: Program, function: Function, runtime: RuntimeNames, launch_width: str) -> None:
        self.program = program
        self.function = function
        self.runtime = runtime
        self.launch_width = launch_width  # the method that sets the number of blocks
        self.callees = callees_of(program)
        self.out = Writer(depth=1)
        self.names = Names(RESERVED, RESERVED_PREFIXES)
        # The runtime of this package computes as the interpreter does; text for a device stays plain.
        self.expressions = (
            ScalarExpressions(self.scalar, self._inline_call, _checked, halves_as_bits=True)
            if runtime.checks_operands
            else CppExpressions(self.scalar, self._inline_call, unchecked)
        )
        self.values: dict[Var, Any] = {}
        self.region = Region(0)
        self.manual: Manual | None = None
        self.uses = read_counts(function.body)
        self.tensor_params: list[Var] = []
        self.scalar_params: list[Var] = []
        self.symbols: dict[Var, tuple[int, int]] = {}  # extent -> tensor parameter and axis
        self.symbol_lines: dict[Var, str] = {}
        self._parameters()

    @functools.cached_property
    def buffers(self) -> BufferNames:
        """Which buffer each tensor variable names."""
        return self.callees.names(self.function)

    # --- parameters ---------------------------------------------------------------------------------------------------

    def _parameters(self) -> None:
        # All names are taken before the body is looked at, so that no variable of the body hides a parameter.
        scalars: dict[str, Var] = {}
        for param in self.function.params:
            if isinstance(param.type, TensorType):
                self.tensor_params.append(param)
                self.values[param] = self.names.of_parameter(param.name_hint, "ext_")
            elif isinstance(param.type, (ScalarType, CommCtxType)):
                self.scalar_params.append(param)
                self.values[param] = self.names.of_variable(param.name_hint)
                scalars[param.name_hint] = param
            else:
                raise InternalError(
                    f"orchestration '{self.function.name}': parameter '{param.name_hint}' of type {param.type} "
                    f"can't be passed [{param.span}]"
                )
        for index, param in enumerate(self.tensor_params):
            for axis, extent in enumerate(param.type.shape):  # type: ignore[attr-defined]
                if isinstance(extent, Var) and extent not in self.values:
                    self.expressions.not_negative.add(extent)
                    scalar = scalars.get(extent.name_hint)
                    if scalar is not None:  # the caller passes this extent as a number, too
                        self.values[extent] = self.values[scalar]
                    else:
                        self.symbols.setdefault(extent, (index, axis))

    def _symbol(self, var: Var) -> str | None:
        """The name of an extent that a tensor parameter declares."""
        found = self.symbols.get(var)
        if found is None:
            return None
        name = self.names.of_variable(var.name_hint)
        index, axis = found
        self.symbol_lines[var] = f"int64_t {name} = (int64_t)orch_args.tensor({index}).ref().shapes[{axis}];"
        self.values[var] = name
        return name

    def known(self, e: Expr) -> bool:
        """Whether all variables of an expression have a value already."""
        return all(v in self.values or v in self.symbols for v in walk(e) if isinstance(v, Var))

    # --- variables ----------------------------------------------------------------------------------------------------

    def value(self, e: Expr) -> Any:
        """What a variable, or an element of a tuple variable, is; None for what has no value here."""
        if isinstance(e, Var):
            found = self.values.get(e)
            return found if found is not None else self._symbol(e)
        if type(e) is TupleGetItemExpr:
            parts = self.value(e.tuple)
            if isinstance(parts, Parts) and e.index < len(parts.elements):
                return parts.elements[e.index]
        return None

    def mention(self, e: Expr) -> str:
        """The C++ name of a variable, for text of the current block."""
        value = self.value(e)
        if type(value) is str:
            return value
        if type(value) is Local:
            if value.region is not None and value.region.closed:
                raise InternalError(
                    f"orchestration '{self.function.name}': '{_hint(e)}' is used behind the loop or branch that "
                    f"defines it (UseAfterDef) [{self.out.place}]"
                )
            return self.out.mention(value)
        if type(value) is Member:
            return f"{self.out.mention(value.outputs)}{value.call}"
        if isinstance(value, Missing):
            raise InternalError(f"{value.message} [{self.out.place}]")
        what = "a tuple is used as a whole" if isinstance(value, Parts) else "no statement before gives it a value"
        raise InternalError(f"orchestration '{self.function.name}': '{_hint(e)}': {what} [{self.out.place}]")

    def scalar(self, var: Var) -> str:
        """The text of a variable in an expression."""
        return self.mention(var)

    def text(self, e: Expr) -> str:
        """The text of a scalar expression, or the name of anything else."""
        if type(e) is TupleGetItemExpr and self.value(e) is not None:
            return self.mention(e)
        return self.expressions.text(e)

    def declare(self, var: Var | None, ctype: str, name: str, value: str | None, empty: str = "{}") -> Local:
        """Declare a C++ variable here, and let a variable of the program be that."""
        return self.own(var, self.out.declare(ctype, name, value, empty=empty))

    def own(self, var: Var | None, local: Local) -> Local:
        """Let a variable of the program be a C++ variable that belongs to the current loop body or branch."""
        local.region = self.region
        if var is not None:
            self.values[var] = local
        return local

    def name_of(self, var: Var) -> str:
        """A new C++ name for a variable of the program."""
        return self.names.of_variable(var.name_hint)

    def valid_in(self, e: Expr, block: Block) -> bool:
        """Whether an expression already means in ``block`` what it means here."""
        for var in walk(e):
            if isinstance(var, Var):
                value = self.value(var)
                if type(value) is Local and not (value.valid_in.holds(block) and value.block.holds(block)):
                    return False
        return True

    def is_used(self, var: Var) -> bool:
        """Whether anything reads a variable."""
        return self.uses.get(var, 0) > 0

    # --- small texts --------------------------------------------------------------------------------------------------

    def extent(self, e: Expr) -> str:
        """An extent or offset: bare if constant."""
        value = e.value if type(e) is ConstInt else None
        return str(value) if value is not None else f"static_cast<uint32_t>({self.text(e)})"

    def array_of(self, ctype: str, name: str, items: list[str]) -> None:
        """``uint32_t name[n] = {...};`` (an array has at least one element)."""
        self.out.line(f"{ctype} {name}[{max(len(items), 1)}] = {{{', '.join(items)}}};")

    def _inline_call(self, call: Call) -> str:
        """A call inside an expression: only what costs nothing and waits for nothing."""
        name = call.op.name
        if name in ("system.available_cluster_count", "system.available_aiv_count"):
            return f"rt_{name.removeprefix('system.')}()"
        if name == "system.task_is_valid":
            return f"{self.mention(call.args[0])}.is_valid()"
        if name == "system.task_invalid":
            return "PTO2TaskId::invalid()"
        if name == "array.get_element":
            return f"{self.mention(call.args[0])}[{self.text(call.args[1])}]"
        if name == "tensor.dim":
            return self.dim(call)
        raise InternalError(
            f"orchestration '{self.function.name}': the call of '{name}' inside an expression should have become a "
            f"statement (FlattenCallExpr) [{call.span}]"
        )

    def dim(self, call: Call) -> str:
        """The text of ``tensor.dim``."""
        tensor, axis = call.args
        shape = tensor.type.shape  # type: ignore[attr-defined]
        at = constant_int(axis)
        assert at is not None  # the type rule wants a constant
        extent = shape[at]
        if type(extent) is ConstInt:
            return str(extent.value)
        return f"(int64_t){self.mention(tensor)}.shapes[{at % len(shape)}]"


def ctype_of(var: Var, runtime: RuntimeNames) -> str:
    """The C++ type of a variable that is no array."""
    kind = var.type
    if isinstance(kind, TensorType):
        return runtime.tensor
    if isinstance(kind, ScalarType):
        return scalar_type(kind.dtype)
    if isinstance(kind, CommCtxType):
        return "uint64_t"
    raise InternalError(f"orchestration code: no C++ type for '{var.name_hint}' of type {kind} [{var.span}]")


def _hint(e: Any) -> str:
    return e.name_hint if isinstance(e, Var) else str(e)


__all__ = ["Base", "Manual", "Member", "Missing", "Parts", "Region", "ctype_of"]
