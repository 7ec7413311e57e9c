"""The body parser of a specialisation: the language's parser, given what is known at this call.

Shapes and element types of parameters are known, scalars that the call gave are constants, names of the surrounding
code are values. A branch on such a constant is resolved, so that the dead side may be ill-typed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from ..frontend.base import types_agree
from ..frontend.closure import MISSING, dotted
from ..frontend.comments import CommentQueue, function_comments
from ..frontend.context import Signature
from ..frontend.errors import ParserTypeError, UnsupportedFeatureError
from ..frontend.function_parser import FunctionOptions, FunctionParser
from ..frontend.typecheck import mismatch
from ..ir.dtype import DataType
from ..ir.enums import ParamDirection, TensorLayout
from ..ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, MakeTuple, Var
from ..ir.stmt import AssignStmt
from ..ir.tree import walk
from ..ir.type import ScalarType, TensorType, TileType, TupleType, Type, UnknownType
from .extern import declared_outputs
from .graph import admits
from .messages import MissingMetadataError
from .scan import dynamic_name
from .static import SHAPED, JitClosure, StaticReads

if TYPE_CHECKING:
    from .decorator import JITFunction
    from .parameters import Parameter
    from .specialize import Spec, Specializer

_BARE = ("Tensor", "DistributedTensor", "Tile", "Scalar", "Out", "InOut")


class JitFunctionParser(StaticReads):
    """Parses one function for one set of parameter types and constants."""

    allow_defaults = True

    def __init__(
        self,
        function: JITFunction,
        name: str,
        specs: Sequence[Spec],
        specializer: Specializer,
        options: FunctionOptions,
    ) -> None:
        self.jit_function = function
        self.specializer = specializer
        self.scan = function._scan()
        self.constants: dict[str, Any] = {}
        namespace = function._namespace
        closure = JitClosure(namespace.globals, namespace.local_values(), self.constants, self.scan.is_local)
        source, node = self.scan.source, self.scan.node
        comments = CommentQueue(function_comments(source, node))
        super().__init__(node, source, closure, specializer.context, options, comments)
        self.jit_closure = closure
        self.function_name = name
        self.rename_rebinds = True
        self.specs = {p.name: (p, s) for p, s in zip(function._parameters(), specs, strict=True)}
        self.param_vars: dict[str, Var] = {}
        self.anchors: dict[Var, tuple[Var, int]] = {}
        self.definition_depths: dict[Var, int] = {}
        self.renamed: dict[str, str] = {}
        self.partial_results: list[Type | None] = []
        # While a simple statement is parsed: the expression that it evaluates; what it launches stays in its order.
        self.evaluated: ast.expr | None = None
        self.has_launched = False

    # --- signature ----------------------------------------------------------------------------------------------------

    def _parameter(self, arg: ast.arg) -> None:
        name = arg.arg
        parameter, spec = self.specs[name]
        direction = parameter.direction
        kind = spec.type
        if kind is None:
            if arg.annotation is None:
                self.type_error(
                    f"Parameter '{name}' missing type annotation",
                    arg,
                    f"Write {name}: pl.Tensor, or {name}: pl.Scalar[pl.INDEX]",
                )
            kind, direction = self.parameter_type(arg.annotation)
        view = getattr(kind, "tensor_view", None)
        if view is not None and view.layout is TensorLayout.DN:
            self._refuse_layout(arg)
        if self.jit_function._func_type == "inline":
            direction = ParamDirection.In  # spliced code has no parameters to write
        if isinstance(kind, ScalarType):
            direction = ParamDirection.In
        var = Var(name, kind, self.span(arg))
        self._params.append(var)
        self._directions.append(direction)
        self.param_vars[name] = var
        if spec.value is not MISSING and name not in self.scan.nested_stores:
            self.constants[name] = spec.value
        else:
            self.scopes.bind(name, var)
        if isinstance(kind, TensorType):
            for dim, extent in enumerate(kind.shape):
                if type(extent) is Var:
                    self.declared_symbols.add(extent)
                    self.anchors.setdefault(extent, (var, dim))

    def _refuse_layout(self, arg: ast.arg) -> None:
        if arg.annotation is not None:
            self.parameter_type(arg.annotation)  # the parser's own words, where the annotation names the layout
        self.type_error(f"parameter '{arg.arg}': layout DN can't be a parameter's layout", arg)

    def return_types(self, node: ast.expr | None) -> list[Type]:
        """Declared results; an element without subscript (``pl.Tensor``) is left to inference."""
        if node is None:
            return []
        node = self._unquote(node)
        items = [node]
        if type(node) is ast.Subscript and dotted(node.value) == ("tuple",):
            items = list(node.slice.elts) if type(node.slice) is ast.Tuple else [node.slice]
        bare = [(dotted(self._unquote(item)) or ("",))[-1] in _BARE for item in items]
        if not any(bare):
            return super().return_types(node)
        if not all(bare):
            self.partial_results = [
                None if is_bare else self.annotation(item) for item, is_bare in zip(items, bare, strict=True)
            ]
        return []

    def final_results(self, declared: list[Type]) -> list[Type]:
        """The declared results, else the types of the first returned values."""
        if declared:
            return declared
        if self.options.external_source is not None:
            return declared_outputs(self.parse_signature())
        found = next(((values, span) for values, span in self.return_values if values), None)
        if found is None:
            return []
        values, span = found
        kinds: list[Type] = [value.type for value in values]
        if len(kinds) == 1 and isinstance(kinds[0], TupleType):
            kinds = list(kinds[0].types)
        if self.partial_results:
            if len(self.partial_results) != len(kinds):
                raise ParserTypeError(
                    f"return has {len(kinds)} value(s) but function '{self.function_name}' declares "
                    f"{len(self.partial_results)}",
                    span,
                )
            for i, (want, have) in enumerate(zip(self.partial_results, kinds, strict=True)):
                problem = mismatch(want, have) if want is not None else None
                if problem is not None:
                    raise ParserTypeError(f"return value {i}: declared result {problem}", span, f"Declared: {want}")
            kinds = [have if want is None else want for want, have in zip(self.partial_results, kinds, strict=True)]
        if any(isinstance(k, UnknownType) or self._mentions_locals(k) for k in kinds):
            return []
        return kinds

    def _mentions_locals(self, kind: Type) -> bool:
        """Whether a type's extents name variables that a caller can't see."""
        known = (*self.declared_symbols, *self._params)
        extents = [*kind.shape, *kind.valid_extents] if isinstance(kind, SHAPED) else []
        return any(isinstance(e, Var) and not any(e is k for k in known) for extent in extents for e in walk(extent))

    # --- names --------------------------------------------------------------------------------------------------------

    def target_var(self, name: str, type_: Type, span: Any, node: Any) -> Var:
        if self.closure is not self.jit_closure:  # in the expansion of an inline function, which has names of its own
            return super().target_var(name, type_, span, node)
        if name in self.constants:
            del self.constants[name]
            if name in self.param_vars:
                self.scopes.tables[0][name] = self.param_vars[name]
        found = self.scopes.lookup(name)
        if type(found) is Var and not types_agree(found.type, type_):
            # A name that leaked from an earlier loop or scope is a fresh one when it is written with another type.
            if self.definition_depths.get(found, 0) > self.scopes.depth_of(name) < self.scopes.depth:
                return self.new_var(name, type_, span)
        var = super().target_var(name, type_, span, node)
        if var.name_hint != name:
            self.renamed[var.name_hint] = name
        return var

    def new_var(self, name: str, type_: Type, span: Any) -> Var:
        var = super().new_var(name, type_, span)
        if len(self.scopes.tables) > 1:
            self.definition_depths[var] = self.scopes.depth
        return var

    def dynamic_symbol(self, dynvar: Any, node: ast.expr) -> Expr:
        """A read of a symbol is a read of the dimension that it is first declared for."""
        symbol = self.context.dynamic_var(dynvar)
        anchor = self.anchors.get(symbol)
        if anchor is None:
            self.type_error(
                f"dynamic dimension '{dynvar.name}' is not a dimension of any parameter of '{self.function_name}'",
                node,
                f"Annotate a parameter with it, or call x.bind_dynamic(0, {dynvar.name})",
            )
        return self._dim_read(anchor[0], anchor[1], node)

    # --- statements ---------------------------------------------------------------------------------------------------

    def stmt_assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if type(target) is ast.Name:
                name = dynamic_name(value)
                if name is not None and target.id in self.scan.local_symbols:
                    self.constants[target.id] = self.specializer.symbol(name)
                    return
                if self._fold_assignment(target, self.shape_read(value), node):
                    return
                if self._fold_assignment(target, self._static_local(target.id, value), node):
                    return
            elif type(target) in (ast.Tuple, ast.List) and self._unpack_shapes(target.elts, value, node):  # type: ignore[attr-defined]
                return
        super().stmt_assign(node)

    def stmt_expr(self, node: ast.Expr) -> None:
        """``x.bind_dynamic(0, rows)`` was read before the body and says nothing here."""
        parts = dotted(node.value.func) if type(node.value) is ast.Call else None
        if parts is None or parts[1:] != ("bind_dynamic",) or parts[0] not in self.param_vars:
            super().stmt_expr(node)
            return
        call = node.value
        assert type(call) is ast.Call
        if (
            len(call.args) != 2
            or call.keywords
            or type(call.args[0]) is not ast.Constant
            or type(call.args[1]) is not ast.Name
        ):
            self.fail("bind_dynamic takes a dimension number and a pl.dynamic name", node, "x.bind_dynamic(0, rows)")

    def _static_local(self, name: str, value: ast.expr) -> Any:
        """The value of ``half = cols // 2`` or ``acc = pl.FP32``, so that it is what it would be in place of the name.

        An extent stays static, a number takes the element type of its tensor, a branch is resolved. Only of a name
        assigned once, from extents and surrounding constants: a scalar parameter keeps its dtype. MISSING for the rest.
        """
        if self.scan.store_counts.get(name) != 1:
            return MISSING
        names = [n.id for n in ast.walk(value) if type(n) is ast.Name]
        if any(n in self.param_vars and isinstance(self.param_vars[n].type, ScalarType) for n in names):
            return MISSING
        found = self.static_value(value)
        extents = isinstance(found, (tuple, list)) and all(type(e) is int for e in found)
        return found if extents or isinstance(found, (int, float, str, DataType, Enum)) else MISSING

    def _unpack_shapes(self, targets: list[ast.expr], value: ast.expr, node: ast.Assign) -> bool:
        """``R, C = x.shape`` and ``R, n = x.shape[0], min(8, y.shape[1])``: each item as if it were assigned alone."""
        if not all(type(t) is ast.Name for t in targets):
            return False
        if type(value) in (ast.Tuple, ast.List):
            nodes = value.elts  # type: ignore[attr-defined]
            if len(nodes) != len(targets):
                return False
            items = [self._known_item(t.id, e) for t, e in zip(targets, nodes, strict=True)]  # type: ignore[attr-defined]
            if all(item is MISSING for item in items):
                return False
            computed = iter(self._all_at_once([e for item, e in zip(items, nodes, strict=True) if item is MISSING]))
            items = [next(computed) if item is MISSING else item for item in items]
        else:
            shape = self.shape_read(value)
            if not isinstance(shape, tuple):
                return False
            items = list(shape)
        if len(items) != len(targets):
            self.type_error(f"cannot unpack {len(items)} values into {len(targets)} names", node)
        for target, item in zip(targets, items, strict=True):
            if not self._fold_assignment(target, item, node):
                value_expr = self._as_value(item, value)
                self.assign(target.id, value_expr, self.span(node), target)  # type: ignore[attr-defined]
        return True

    def _all_at_once(self, nodes: Sequence[ast.expr]) -> list[Expr]:
        """Values that are computed before any of them is assigned."""
        values = [self.expr(e) for e in nodes]
        if len(values) < 2:
            return values
        span = self.span(nodes[0])
        return self.items_of(MakeTuple(values, span), span)

    def _known_item(self, name: str, value: ast.expr) -> Any:
        found = self.shape_read(value)
        return self._static_local(name, value) if found is MISSING else found

    def _fold_assignment(self, target: ast.expr, value: Any, node: ast.Assign) -> bool:
        """``name = <shape read>``: a static value is kept as a constant; a declared symbol binds the name."""
        if value is MISSING:
            return False
        assert type(target) is ast.Name
        name = target.id
        if isinstance(value, Expr):
            if isinstance(value, Var) and value in self.declared_symbols and self.scan.store_counts.get(name) == 1:
                self.scopes.bind(name, value)
                return True
            return False
        if isinstance(value, tuple) and any(isinstance(v, Expr) for v in value):
            return False
        if self.closure is not self.jit_closure:
            return False
        if self.scan.store_counts.get(name) != 1 and (
            name in self.scan.nested_stores or self.scopes.lookup(name) is not None
        ):
            return False
        self.constants[name] = value
        return True

    # --- calls --------------------------------------------------------------------------------------------------------

    def _bare_call(self, name: str, node: ast.Call) -> Expr:
        # A helper keeps its name although the caller assigns the result to it: `scores = scores(q, k)`.
        value = self.closure.get(name)
        if hasattr(value, "__pypto_helper__"):
            return self.helper_call(value, node)
        return super()._bare_call(name, node)

    def helper_call(self, helper: Any, node: ast.Call) -> Expr:
        device_node = next((k.value for k in node.keywords if k.arg == "device"), None)
        keywords = [k for k in node.keywords if k.arg not in ("device", "attrs")]
        nodes, args, overrides = self._bound_arguments(helper, list(node.args), keywords, node)
        gvar, signature, args = self.specialized_callee(helper, nodes, args, node)
        self.check_arguments(helper.__name__, signature, args, nodes)
        attrs: dict[str, Any] = {"arg_direction_overrides": overrides} if overrides else {}
        if device_node is not None:
            if helper._func_type != "orchestration":
                self._refuse_keyword(helper.__name__, "device", node)
            attrs["device"] = self.expr(device_node)
        attr_node = next((k.value for k in node.keywords if k.arg == "attrs"), None)
        if attr_node is not None:
            attrs = self.function_call_attrs(attr_node, args, attrs)
        attrs = self.with_dump_tags(attrs, args)
        call = Call(gvar, args, {}, attrs, self.result_type(signature, args, node), self.span(node))
        if helper._func_type != "inline":
            self.has_launched = True
            return call
        return self._in_front(helper.__name__, call, node)

    def _in_front(self, name: str, call: Call, node: ast.Call) -> Expr:
        """A call of an inline helper inside an expression: put in a statement of its own, where it can be expanded.

        It stays where it is behind a launch, which would otherwise come after it, and where no statement can be put in
        front, as in the condition of a loop.
        """
        is_operand = self.evaluated is not None and node is not self.evaluated
        if not is_operand or self.has_launched or isinstance(call.type, (TupleType, UnknownType)):
            return call
        var = Var(name, call.type, call.span)
        self.emit(AssignStmt(var, call, call.span))
        return var

    def simple_statement(self, node: Any) -> None:
        """A statement that evaluates one expression, once."""
        outer = self.evaluated, self.has_launched
        # What is written to a part of a value, or added to one, is an operand.
        computes = type(node) is ast.AugAssign or type(node) is ast.Assign and type(node.targets[0]) is ast.Subscript
        self.evaluated, self.has_launched = node if computes else node.value, False
        try:
            _SIMPLE[type(node)](self, node)
        finally:
            self.evaluated, self.has_launched = outer

    def launch_target(self, node: ast.Call, kind: str) -> tuple[Any, Any, str]:
        """``pl.submit(helper, x, y)`` of a jit helper."""
        head = node.args[0] if node.args else None
        parts = dotted(head) if head is not None else None
        value = self.closure.attribute_chain(parts) if parts is not None and parts[0] != "self" else MISSING
        if not hasattr(value, "__pypto_helper__"):
            return super().launch_target(node, kind)
        nodes, args, _ = self._bound_arguments(value, list(node.args[1:]), [], node)
        gvar, signature, _ = self.specialized_callee(value, nodes, args, node)
        return gvar, signature, value.__name__

    def _bound_arguments(
        self, helper: JITFunction, nodes: list[ast.expr], keywords: list[ast.keyword], node: ast.Call
    ) -> tuple[list[ast.expr], Any, list[int]]:
        """Argument syntax and values in parameter order, with keywords and defaults in their places."""
        parameters = helper._parameters()
        name = helper.__name__
        if len(nodes) > len(parameters):
            self._count_error(helper, len(nodes), node)
        slots: list[ast.expr | None] = [*nodes, *[None] * (len(parameters) - len(nodes))]
        index = {p.name: i for i, p in enumerate(parameters)}
        for keyword in keywords:
            position = index.get(keyword.arg or "")
            if position is None or slots[position] is not None:
                self._refuse_keyword(name, keyword.arg, node)
            slots[position] = keyword.value  # type: ignore[index]
        for i, parameter in enumerate(parameters):
            if slots[i] is None:
                if type(parameter.default) not in (int, float, bool):
                    self._count_error(helper, len(nodes) + len(keywords), node)
                slots[i] = ast.copy_location(ast.Constant(parameter.default), node)
        ordered = [slot for slot in slots if slot is not None]
        args, overrides = self.call_arguments(ordered)
        return ordered, args, overrides

    def _count_error(self, helper: JITFunction, count: int, node: ast.Call) -> None:
        parameters = helper._parameters()
        self.type_error(
            f"Function '{helper.__name__}' expects {len(parameters)} argument(s), got {count}",
            node,
            "Parameters: " + ", ".join(f"{p.name}: {p.direction.name}" for p in parameters),
        )

    def specialized_callee(
        self, helper: JITFunction, nodes: Sequence[ast.expr], args: Any, node: ast.Call
    ) -> tuple[Any, Signature, Any]:
        """GlobalVar and signature of the specialisation of ``helper`` for these arguments, and the arguments for it."""
        caller = self.jit_function._func_type
        if not admits(caller, helper._func_type):
            hint = (
                "Mark it @pl.jit.inline, .incore or .opaque"
                if helper._func_type == "orchestration"
                else f"A @pl.jit.{helper._func_type} function is an entry: call it from Python"
            )
            self.fail(
                f"Unsupported function call: {helper.__name__} is an entry of its own",
                node,
                hint,
                UnsupportedFeatureError,
            )
        converted = []
        for parameter, arg, arg_node in zip(helper._parameters(), args, nodes, strict=True):
            self._check_declared(helper, parameter, arg, arg_node)
            converted.append(self._fitted(parameter, arg))
        gvar, signature = self.specializer.callee(helper, converted, self, node)
        return gvar, signature, type(args)(converted)

    def _fitted(self, parameter: Parameter, arg: Expr) -> Expr:
        """A constant as the declared element type has it: an int for a float parameter becomes a float."""
        want = parameter.dtype if parameter.kind == "scalar" else None
        if want is not None and type(arg) is ConstInt and want.is_float_:
            return ConstFloat(float(arg.value), DataType.FP32, arg.span)
        if want is DataType.BOOL and type(arg) is ConstInt and arg.value in (0, 1):
            return ConstBool(bool(arg.value), arg.span)
        return arg

    def _check_declared(self, helper: JITFunction, parameter: Parameter, arg: Expr, node: ast.expr) -> None:
        """An argument against the static part of a helper's annotation."""
        kind = arg.type
        if isinstance(kind, UnknownType):
            raise MissingMetadataError(
                f"@pl.jit: missing inferred tensor metadata for parameter '{parameter.name}' of '{helper.__name__}': "
                f"the type of {ast.unparse(node)} is not known here",
                self.span(node),
                "Annotate the results of the function that gives it",
            )
        if parameter.kind == "tensor" and not isinstance(kind, SHAPED):
            self.type_error(
                f"argument '{parameter.name}' of function '{helper.__name__}': parameter is Tensor but expression has "
                f"type {kind}",
                node,
            )
        if parameter.kind == "tile" and not isinstance(kind, TileType):
            self.type_error(
                f"argument '{parameter.name}' of function '{helper.__name__}': parameter is Tile but expression has "
                f"type {kind}",
                node,
            )
        if parameter.kind != "tensor" or parameter.shape is None or parameter.dtype is None:
            return
        problem = None
        if parameter.dtype is not kind.dtype and {parameter.dtype, kind.dtype} != {DataType.INDEX, DataType.INT64}:  # type: ignore[attr-defined]
            problem = f"has dtype {parameter.dtype} but expression has dtype {kind.dtype}"  # type: ignore[attr-defined]
        elif len(parameter.shape) != len(kind.shape):  # type: ignore[attr-defined]
            problem = f"has rank {len(parameter.shape)} but expression has rank {len(kind.shape)}"  # type: ignore[attr-defined]
        else:
            for i, (extent, have) in enumerate(zip(parameter.shape, kind.shape, strict=True)):  # type: ignore[attr-defined]
                if type(extent) is int and type(have) is ConstInt and have.value != extent:
                    problem = (
                        f"has shape dimension {i} = {extent} but expression has shape dimension {i} = {have.value}"
                    )
                    break
        if problem is not None:
            self.type_error(
                f"argument '{parameter.name}' of function '{helper.__name__}': parameter {problem}",
                node,
                f"Annotated {parameter.declared}",
            )


_SIMPLE: dict[type, Callable[[Any, Any], None]] = {
    ast.Assign: JitFunctionParser.stmt_assign,
    ast.AnnAssign: JitFunctionParser.stmt_ann_assign,
    ast.AugAssign: JitFunctionParser.stmt_aug_assign,
    ast.Expr: JitFunctionParser.stmt_expr,
    ast.Return: JitFunctionParser.stmt_return,
}

JitFunctionParser.STATEMENTS = {
    **FunctionParser.STATEMENTS,
    **dict.fromkeys(_SIMPLE, JitFunctionParser.simple_statement),
}


__all__ = ["JitFunctionParser"]
