"""Launches: the arguments of a task, its options, its submit, and what its results are afterwards."""

from __future__ import annotations

from typing import Any

from ...analysis.callees import argument_index
from ...analysis.task_marks import EDGES
from ...diag.errors import InternalError
from ...ir.dtype import DataType
from ...ir.enums import ArgDirection, CoreType, ParamDirection
from ...ir.expr import (
    COMPARISONS,
    Call,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    Neg,
    Submit,
    TupleGetItemExpr,
    Var,
)
from ...ir.program import Function, Program
from ...ir.substitution import substitute
from ...ir.type import ScalarType, TensorType, TupleType, UnknownType
from ..cpp_expressions import half_bits, integer
from ..errors import CodegenError
from ..runtime_names import INVALID_ID, RuntimeNames, scalar_type
from ..text import Local
from .base import Member, Missing, Parts
from .edges import Edges
from .wrappers import Target, Targets, arguments_of, infer_function_core_type

_D = ArgDirection
_METHODS = {
    _D.Input: "add_input",
    _D.Output: "add_output",
    _D.OutputExisting: "add_output",
    _D.InOut: "add_inout",
    _D.NoDep: "add_no_dep",
    _D.Scalar: "add_scalar",
}
_SIGNATURE = {_D.Input: "IN", _D.Output: "OUT", _D.OutputExisting: "OUT", _D.InOut: "INOUT", _D.NoDep: "INOUT"}
_OF_PARAM = {ParamDirection.In: _D.Input, ParamDirection.Out: _D.OutputExisting, ParamDirection.InOut: _D.InOut}
# Where the literal stands on the left, the comparison reads the other way round.
_OPERATORS = {
    "Eq": ("EQ", "EQ"),
    "Ne": ("NE", "NE"),
    "Lt": ("LT", "GT"),
    "Le": ("LE", "GE"),
    "Gt": ("GT", "LT"),
    "Ge": ("GE", "LE"),
}


class Argument:
    """One task parameter: how it is added, and as what."""

    __slots__ = ("direction", "is_tensor", "text")

    def __init__(self, direction: ArgDirection, text: str, is_tensor: bool) -> None:
        self.direction = direction
        self.text = text
        self.is_tensor = is_tensor


class Launches(Edges):
    """Prints launches. The tables that go with the code are filled on the way."""

    def __init__(self, program: Program, function: Function, runtime: RuntimeNames, launch_width: str) -> None:
        super().__init__(program, function, runtime, launch_width)
        self.targets = Targets(program, self.callees)
        self.kernel_ids: dict[str, int] = {}
        self.core_types: dict[str, CoreType] = {}
        self.signatures: dict[str, list[str]] = {}
        self._tasks = 0

    def launch(self, var: Var | None, call: Any) -> None:
        """A Call or Submit of a function of the program."""
        function = self.callees.of(call)
        if function is None:
            raise InternalError(f"the program has no function '{call.op.name}' [{call.span}]")
        target = self.targets.of(function, call.span)
        number = self._tasks
        self._tasks += 1
        params = self.names.helper(f"params_t{number}")
        made: dict[int, str] = {}  # parameter -> create info of an output that the runtime allocates
        arguments = self._arguments(target, function, call, params, made)
        self._check_limits(target, arguments, call)
        captured = type(call) is Submit or self.is_edge(var, call)
        self.out.line()
        self.out.line(f"// {target.comment.format(number)}")
        self.out.line(f"{self.runtime.task_args} {params};")
        for argument in (*(a for a in arguments if a.is_tensor), *(a for a in arguments if not a.is_tensor)):
            self.out.line(f"{params}.{_METHODS[argument.direction]}({argument.text});")
        self._dump(params, target, function, call)
        submit = self._submit_call(target, number, params)
        options = (self._width, self._early, self._predicate)
        if target.function is function and function is target.kernels[0]:
            self._wait(params, call)
            for option in options:
                option(params, target, call)
        else:
            for option in options:
                option(params, target, call)
            self._wait(params, call)
        self._record(target, arguments)
        if not captured:
            self.out.line(f"{submit};")
            self._results(var, call, function, None, made)
            return
        outputs = self.out.declare("TaskOutputTensors", self.names.helper(f"task_{number}_outs"), submit)
        outputs.region = self.region
        self.capture(var, call, outputs)
        self._results(var, call, function, outputs, made)

    # --- arguments ----------------------------------------------------------------------------------------------------

    def _arguments(
        self, target: Target, function: Function, call: Any, params: str, made: dict[int, str]
    ) -> list[Argument]:
        directions = call.arg_directions
        if directions and len(directions) != len(call.args):
            raise InternalError(
                f"launch of '{function.name}': {len(directions)} arg_directions for {len(call.args)} arguments "
                f"(DeriveCallDirections) [{call.span}]"
            )
        found = []
        for slot, param in zip(target.slots, target.kernels[0].params, strict=False):
            if type(slot) is not int:
                number = substitute(slot, arguments_of(function, call))
                found.append(Argument(_D.Scalar, self._scalar_argument(number, param.type), False))
                continue
            index = argument_index(function.params, len(call.args), slot)
            if index is None:
                if slot not in made:
                    made[slot] = self._allocated_output(function, slot, call, params)
                    found.append(Argument(_D.Output, made[slot], True))
                    continue
                raise InternalError(
                    f"launch of '{function.name}': an output that the runtime allocates is passed twice [{call.span}]"
                )
            arg = call.args[index]
            direction = directions[index] if directions else self._param_direction(function, slot, arg)
            if isinstance(arg.type, TensorType):
                found.append(Argument(direction, self._tensor_argument(arg, function, call), True))
            else:
                found.append(Argument(_D.Scalar, self._scalar_argument(arg, param.type), False))
        return found

    def _param_direction(self, function: Function, index: int, arg: Expr) -> ArgDirection:
        return _OF_PARAM[function.param_directions[index]] if isinstance(arg.type, TensorType) else _D.Scalar

    def _tensor_argument(self, arg: Expr, function: Function, call: Any) -> str:
        if not isinstance(arg, (Var, TupleGetItemExpr)):
            raise InternalError(
                f"launch of '{function.name}': an argument is neither a variable nor a literal (FlattenCallExpr) "
                f"[{call.span}]"
            )
        # The runtime keeps the address: what is passed must be a variable.
        if type(self.value(arg)) is Member:
            return self.bound_output(arg)
        return self.mention(arg)

    def bound_output(self, arg: Expr) -> str:
        """A variable for an allocated output that is passed on without a name of its own."""
        name = self.names.helper("output")
        return self.declare(None, f"const {self.runtime.tensor}&", name, self.mention(arg)).name

    def _scalar_argument(self, arg: Expr, param: Any) -> str:
        """A scalar as 64 bits, of the element type that the kernel's parameter has."""
        wanted = param.dtype if isinstance(param, ScalarType) else None
        number = _number(arg)
        if number is not None:
            return self._literal(number, arg.type, wanted)
        is_float = isinstance(arg.type, ScalarType) and arg.type.dtype.is_float_
        if isinstance(arg, (Var, TupleGetItemExpr)):
            text = self.mention(arg)
            return f"to_u64({text})" if is_float else text
        # Arithmetic, which FlattenCallExpr leaves where it is: as the type that a variable for it would have.
        typed = f"static_cast<{scalar_type(arg.type.dtype)}>({self.text(arg)})"  # type: ignore[attr-defined]
        return f"to_u64({typed})" if is_float else f"(uint64_t){typed}"

    def _literal(self, number: Any, kind: Any, wanted: Any) -> str:
        dtype = kind.dtype if wanted is None or wanted.is_float_ is kind.dtype.is_float_ else wanted
        if wanted is not None and wanted.is_float_:
            if wanted in (DataType.FP16, DataType.BF16):
                return f"(uint64_t){half_bits(float(number), wanted)}"
            return f"to_u64({self.expressions.floating(float(number))})"
        if type(number) is bool:
            return f"(uint64_t){int(number)}"
        if dtype.is_float_:
            return f"to_u64({self.expressions.floating(float(number))})"
        text = integer(int(number))
        return f"(uint64_t){text}" if dtype.get_bit() == 64 else f"(uint64_t)static_cast<{scalar_type(dtype)}>({text})"

    def _allocated_output(self, function: Function, index: int, call: Any, params: str) -> str:
        param = function.params[index]
        kind = param.type
        if function.param_directions[index] is not ParamDirection.Out or not isinstance(kind, TensorType):
            raise InternalError(
                f"launch of '{function.name}': argument '{param.name_hint}' is missing, and only an Out tensor can be "
                f"allocated by the runtime [{call.span}]"
            )
        returned = self.callees.returned_params(function) or ()
        if index in returned and isinstance(call.type, TupleType):  # the result's type is in terms of the caller
            kind = call.type.types[returned.index(index)]
        try:
            extents = [self.extent(e) for e in kind.shape]  # type: ignore[attr-defined]
        except InternalError as error:
            raise CodegenError(
                f"launch of '{function.name}': the shape of the output '{param.name_hint}', which the runtime is to "
                "allocate, is not known to the caller",
                call.span,
                hint="create the tensor and pass it",
            ) from error
        return self.create_info(f"{params}_synth_out_{index}", extents, kind.dtype, False, None)  # type: ignore[attr-defined]

    def _check_limits(self, target: Target, arguments: list[Argument], call: Any) -> None:
        tensors = sum(a.is_tensor for a in arguments)
        counts = (
            (tensors, self.runtime.max_task_tensors, "tensors"),
            (len(arguments) - tensors, self.runtime.max_task_scalars, "scalars"),
        )
        for count, limit, what in counts:
            if count > limit:
                raise CodegenError(
                    f"the launch of '{target.function.name}' passes {count} {what}, a task takes at most {limit}",
                    call.span,
                    hint="pass fewer: slices of one tensor instead of many tensors, or a tensor of numbers",
                )

    def _dump(self, params: str, target: Target, function: Function, call: Any) -> None:
        marks = [self.mention(e) for e in call.attrs.get("dump_vars", ())]
        for index in target.dumped:
            at = argument_index(function.params, len(call.args), index)
            if at is not None and isinstance(call.args[at].type, TensorType):
                marks.append(self.mention(call.args[at]))
        if marks:
            self.out.line(f"{params}.dump({', '.join(dict.fromkeys(marks))});")

    # --- options ------------------------------------------------------------------------------------------------------

    def _wait(self, params: str, call: Any) -> None:
        user = call.deps if type(call) is Submit else call.attrs.get("manual_dep_edges", ())
        self.dependency_block(params, user, self.derived_ids(call.attrs.get(EDGES, ())), call.span)

    def _width(self, params: str, target: Target, call: Any) -> None:
        if type(call) is Submit:
            count, together = call.core_num, call.sync_start
        else:
            count, together = call.attrs.get("core_num"), call.attrs.get("sync_start")
        count = target.launch.get("core_num") if count is None else count
        if count is not None:
            self.out.line(f"{params}.launch_spec.{self.launch_width}({self._core_num(count)});")
        if together or target.launch.get("sync_start"):
            self.out.line(f"{params}.launch_spec.set_require_sync_start(true);")

    def _core_num(self, count: Any) -> str:
        if type(count) is int:
            return str(count)
        kind = count.type
        if not isinstance(kind, ScalarType) or isinstance(count, ConstFloat):
            raise InternalError(f"Unsupported core_num expression kind {type(count).__name__} [{count.span}]")
        try:
            return self.text(count)
        except InternalError as error:
            if "no text for" in str(error) or "inside an expression" in str(error):
                raise InternalError(
                    f"Unsupported core_num expression kind {type(count).__name__} [{count.span}]"
                ) from error
            raise

    def _early(self, params: str, target: Target, call: Any) -> None:
        early = call.allow_early_resolve if type(call) is Submit else call.attrs.get("allow_early_resolve")
        if early:
            self.out.line(f"{params}.set_allow_early_resolve(true);")

    def _predicate(self, params: str, target: Target, call: Any) -> None:
        predicate = call.predicate if type(call) is Submit else call.attrs.get("predicate")
        if predicate is None:
            return
        element, operator, literal = _comparison(predicate, call)
        tensor, indices = element.args[0], list(element.args[1].elements)
        self._check_predicate(tensor, indices, call)
        name = self.names.helper(f"{params}_pred")
        line = self.out.line
        line(f"{self.runtime.predicate} {name};")
        line(f"{name}.operand.tensor = &{self.mention(tensor)};")
        line(f"{name}.operand.ndims = {len(indices)};")
        for i, index in enumerate(indices):
            line(f"{name}.operand.indices[{i}] = {self.text(index)};")
        line(f"{name}.op = PredicateOp::{operator};")
        line(f"{name}.target = {integer(literal)};")
        line(f"{params}.set_predicate({name});")

    def _check_predicate(self, tensor: Expr, indices: list[Expr], call: Any) -> None:
        from ...analysis.constants import constant_int

        kind: Any = tensor.type
        if not isinstance(tensor, (Var, TupleGetItemExpr)):
            raise CodegenError("predicate: the operand must be a named tensor", call.span)
        if not (kind.dtype.is_signed_ and kind.dtype.get_bit() in (8, 16, 32, 64)):
            raise CodegenError(
                f"predicate: the operand must be of a signed 8/16/32/64-bit integer tensor, got {kind.dtype}",
                call.span,
            )
        if len(indices) > self.runtime.max_dims:
            raise CodegenError(
                f"predicate: the operand has rank {len(indices)}, exceeding the runtime's maximum of "
                f"{self.runtime.max_dims}",
                call.span,
            )
        for i, index in enumerate(indices):
            value = constant_int(index)
            if value is not None and value < 0:
                raise CodegenError(f"predicate: index {i} of the operand is negative ({value})", call.span)

    # --- the submit ---------------------------------------------------------------------------------------------------

    def _submit_call(self, target: Target, number: int, params: str) -> str:
        for kernel in target.kernels:  # cube before vector
            self.core_types.setdefault(kernel.name, infer_function_core_type(kernel))
            self.kernel_ids.setdefault(kernel.name, len(self.kernel_ids))
        if target.lanes is None:
            kernel = target.kernels[0]
            core = "aic" if self.core_types[kernel.name] is CoreType.CUBE else "aiv"
            return f"rt_submit_{core}_task({self.kernel_ids[kernel.name]}, {params})"
        mixed = self.names.helper(f"mixed_{number}")
        lanes = ["INVALID_KERNEL_ID" if lane is None else str(self.kernel_ids[lane.name]) for lane in target.lanes]
        self.out.line(f"MixedKernels {mixed} = {{{', '.join(lanes)}}};")
        return f"rt_submit_task({mixed}, {params})"

    def _record(self, target: Target, arguments: list[Argument]) -> None:
        """The signature of each kernel: what any of its launches does to a tensor."""
        found = [_SIGNATURE[a.direction] for a in arguments if a.is_tensor]
        for kernel in target.kernels:
            known = self.signatures.get(kernel.name)
            if known is not None and len(known) == len(found):
                found = [a if a == b else "INOUT" for a, b in zip(known, found, strict=True)]
            self.signatures[kernel.name] = found

    # --- results ------------------------------------------------------------------------------------------------------

    def _results(
        self, var: Var | None, call: Any, function: Function, outputs: Local | None, made: dict[int, str]
    ) -> None:
        """What the result of a launch is: other names of arguments, allocated outputs, the task's id."""
        if var is None:
            return
        kinds = _result_types(call)
        sources = self._sources(function, call, kinds)
        order = list(made)
        values: list[Any] = []
        for position, kind in enumerate(kinds):
            source = sources[position]
            if source is None:
                values.append(self._no_source(function, kind, position))
                continue
            argument = argument_index(function.params, len(call.args), source)
            if argument is None:
                assert outputs is not None  # only a Submit leaves arguments out
                values.append(Member(outputs, f".get_ref({order.index(source)})"))
            else:
                values.append(self.value(call.args[argument]) or self.text(call.args[argument]))
        if type(call) is Submit:
            assert outputs is not None
            values.append(Member(outputs, ".task_id()"))
        if isinstance(var.type, TupleType):
            self.values[var] = Parts(values)
            if type(call) is not Submit and any(self.is_used(var) and isinstance(v, Missing) for v in values):
                pass  # only an element that is used is an error
        elif values:
            self.bind(var, values[0])

    def _sources(self, function: Function, call: Any, kinds: list[Any]) -> list[int | None]:
        """For each result the parameter that it is."""
        returned = list(self.callees.returned_params(function) or ())
        if len(returned) >= len(kinds) and all(
            r is not None or not isinstance(k, TensorType) for r, k in zip(returned, kinds, strict=False)
        ):
            return returned[: len(kinds)]
        outputs = [
            i
            for i, (p, d) in enumerate(zip(function.params, function.param_directions, strict=True))
            if d is not ParamDirection.In and isinstance(p.type, TensorType)
        ]
        tensors = sum(isinstance(k, TensorType) for k in kinds)
        # One tensor from the only output needs no guess; neither does an external kernel, which has no body to ask.
        if (tensors == 1 and len(outputs) == 1) or (function.attrs.get("external_source") and len(outputs) >= tensors):
            last = iter(outputs[len(outputs) - tensors :])
            return [next(last) if isinstance(k, TensorType) else None for k in kinds]
        return [returned[i] if i < len(returned) else None for i in range(len(kinds))]

    def _no_source(self, function: Function, kind: Any, position: int) -> Missing:
        if isinstance(kind, TensorType):
            return Missing(
                f"result {position} of '{function.name}' is none of its parameters: NormalizeReturnOrder should have "
                "made its return statement explicit. Aliasing would be a guess"
            )
        return Missing(
            f"result {position} of '{function.name}' is a scalar, which a task can't give back to orchestration"
        )

    def element(self, var: Var, source: TupleGetItemExpr) -> None:
        """``var = ret[i]``."""
        value = self.value(source)
        if value is None:
            self.mention(source)  # says what is wrong
        self.bind(var, value)

    def bind(self, var: Var, value: Any) -> None:
        """Let a variable be a result. What is used of it later needs a name of its own only if it has none yet."""
        if type(value) is Member:
            if value.call == ".task_id()":
                if self.is_used(var):
                    tid = self.declare(var, "PTO2TaskId", self.name_of(var), self._member(value), f" = {INVALID_ID}")
                    tid.sure = True
                return
            if not value.outputs.block.holds(self.out.block):
                raise self.too_late(var.name_hint, self.out.place)
            made = self.declare(var, f"const {self.runtime.tensor}&", self.name_of(var), self._member(value))
            made.stays = True
            return
        local_to_manual = self.manual is not None and type(value) is Local and value.block is self.manual.block
        if (
            local_to_manual
            and isinstance(var.type, TensorType)
            and self.is_used(var)
            and value.ctype == self.runtime.tensor
        ):
            # A name of its own for a tensor that ends with the scope.
            self.declare(var, f"const {self.runtime.tensor}&", self.name_of(var), self.out.mention(value))
            return
        if isinstance(value, Missing) and isinstance(var.type, ScalarType) and self.is_used(var):
            raise CodegenError(f"'{var.name_hint}': {value.message}", self.out.place)
        self.values[var] = value

    def _member(self, value: Member) -> str:
        return f"{self.out.mention(value.outputs)}{value.call}"


def _number(e: Any) -> Any:
    """The value of a literal, also a negated one; None for anything else."""
    if type(e) is Neg and isinstance(e.operand, (ConstInt, ConstFloat)):
        return -e.operand.value
    return e.value if type(e) in (ConstInt, ConstFloat, ConstBool) else None


def _result_types(call: Any) -> list[Any]:
    kind = call.type
    if type(call) is Submit:
        return list(kind.types[:-1]) if isinstance(kind, TupleType) else []
    if isinstance(kind, TupleType):
        return list(kind.types)
    return [] if isinstance(kind, UnknownType) else [kind]


def _comparison(predicate: Expr, call: Any) -> tuple[Any, str, int]:
    """The tensor element, the operator and the literal of a predicate."""
    from ...analysis.constants import constant_int

    if type(predicate) not in COMPARISONS:
        raise CodegenError("predicate: it must be a single comparison of a tensor element with an integer", call.span)
    left, right = _uncast(predicate.left), _uncast(predicate.right)  # type: ignore[attr-defined]
    operator, mirrored = _OPERATORS[type(predicate).__name__]
    for element, literal, name in ((left, right, operator), (right, left, mirrored)):
        value = constant_int(literal)
        if value is not None and type(element) is Call and element.op.name == "tensor.read":
            return element, name, value
    raise CodegenError("predicate: it must compare a tensor element with an integer literal", call.span)


def _uncast(e: Any) -> Any:
    while type(e) is Cast:
        e = e.operand
    return e


__all__ = ["Launches"]
