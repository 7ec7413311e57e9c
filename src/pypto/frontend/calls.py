"""Calls: operators, other functions of the program, external functions, inline expansion."""

from __future__ import annotations

import ast
import enum
from collections.abc import Sequence
from typing import Any, NoReturn

from ..diag.concise import concise_error_message
from ..ir import scalar as scalars
from ..ir.dtype import BY_NAME, DataType
from ..ir.enums import FunctionType, Level, Role
from ..ir.expr import Call, ConstFloat, ConstInt, Expr, GlobalVar, TupleGetItemExpr, Var
from ..ir.location import pin, unpin
from ..ir.node import EMPTY_DICT, EMPTY_LIST, FrozenDict, FrozenList
from ..ir.program import Function
from ..ir.span import Span
from ..ir.tree import deduce_call_return_type
from ..ir.type import ScalarType, TensorType, TupleType, Type, UnknownType
from ..ir.visible_types import inferred_return_types
from ..ops.surface import INFO, IR_NAMESPACES, NAMESPACES, level_of
from .call_attrs import CallAttributes
from .closure import MISSING, dotted
from .context import BufferMetadata, Signature
from .errors import (
    BUG_CLASS_EXCEPTIONS,
    InvalidOperationError,
    ParserError,
    ParserTypeError,
    Suppressed,
    UndefinedVariableError,
    UnsupportedFeatureError,
    did_you_mean,
)
from .inline import InlineFunction
from .typecheck import mismatch

_OP_NAMESPACES = ("tensor", "tile", "system", "array", "prefetch")
# Scalar builtins that a body may call by their bare Python name.
_SCALAR_BUILTINS = {"min": scalars.min_, "max": scalars.max_}
_ENUM_ARGUMENT = (enum.Enum, DataType)


class Calls(CallAttributes):
    """Call syntax to IR calls."""

    def call(self, node: ast.Call) -> Expr:
        parts = dotted(node.func)
        if parts is None:
            self._unsupported_call(node)
        if parts[-1] == "yield_":
            return self.yield_expression(node)
        if len(parts) == 1:
            return self._bare_call(parts[0], node)
        if parts[0] == "self" and len(parts) == 2:
            return self.method_call(parts[1], node)
        prefix = self.closure.alias(parts[0]) if self.scopes.lookup(parts[0]) is None else None
        if prefix == "pl":
            return self._pl_call(parts[1:], node)
        if prefix == "pld":
            return self._pld_call(parts[1:], node)
        value = MISSING if self.scopes.lookup(parts[0]) is not None else self.closure.attribute_chain(parts)
        if value is not MISSING:
            handled = self._closure_callee(value, parts[-1], node)
            if handled is not None:
                return handled
        handled = self.method_of_value(parts, node)
        if handled is not None:
            return handled
        self._unsupported_call(node)

    def method_of_value(self, parts: tuple[str, ...], node: ast.Call) -> Expr | None:
        """A method call on a DSL value; a jit specialisation knows some."""
        return None

    def _unsupported_call(self, node: ast.Call) -> NoReturn:
        text = ast.unparse(node.func)
        kind = "function" if type(node.func) is ast.Name else "operation"
        hint = None
        if type(node.func) is ast.Name and text in NAMESPACES["pl"]:
            hint = f"Did you mean 'pl.{text}'?"
        elif text == "print":
            hint = "pl.static_print(...) prints while the function is parsed"
        elif text.rpartition(".")[2] in NAMESPACES["pl"]:
            hint = f"Values of a kernel are computed by operations: pl.{text.rpartition('.')[2]}(...)"
        self.fail(f"Unsupported {kind} call: {text}", node, hint, UnsupportedFeatureError)

    def _bare_call(self, name: str, node: ast.Call) -> Expr:
        value = self.closure.get(name)
        if self.scopes.lookup(name) is None and value is not MISSING:
            handled = self._closure_callee(value, name, node)
            if handled is not None:
                return handled
        if name in _SCALAR_BUILTINS and value in (min, max) and len(node.args) >= 2 and not node.keywords:
            return self._fold_builtin(name, node)
        if name == "abs" and value is abs and len(node.args) == 1 and not node.keywords:
            operand = self.expr(node.args[0])
            if level_of(operand) == "scalar":
                return scalars.abs_(operand, self.span(node))
            return self.call_surface(NAMESPACES["pl"]["abs"], (operand,), {}, "pl.abs", node)  # type: ignore[no-any-return]
        if value is not MISSING and value in (len, int, float, round, sum, bool):
            folded = self.evaluate(node) if self._only_closure_names(node) else MISSING
            if type(folded) in (int, float, bool):
                return self.number(folded, self.span(node))
        self._unsupported_call(node)

    def _only_closure_names(self, node: ast.AST) -> bool:
        return all(self.scopes.lookup(n.id) is None for n in ast.walk(node) if type(n) is ast.Name)

    def _fold_builtin(self, name: str, node: ast.Call) -> Expr:
        values = [self.operand(a) for a in node.args]
        if all(not isinstance(v, Expr) for v in values):
            return self.number({"min": min, "max": max}[name](values), self.span(node))
        span = self.span(node)
        items = [v if isinstance(v, Expr) else self.number(v, span) for v in values]
        result = items[0]
        for item in items[1:]:
            result = _SCALAR_BUILTINS[name](result, item, span)
        return result

    def _closure_callee(self, value: Any, name: str, node: ast.Call) -> Expr | None:
        """A call of a Python value: a function, an inline function, a jit helper, or a directly imported operation."""
        if isinstance(value, Function):
            return self.external_call(value, node)
        if isinstance(value, InlineFunction):
            return self.inline_call(value, node)
        specialize = getattr(value, "__pypto_helper__", None)
        if specialize is not None:
            return self.helper_call(value, node)
        surface = getattr(value, "__wrapped__", None)
        info = INFO.get(surface) if surface is not None else None
        if info is not None:
            spelling = f"pl.{info.name}" if info.namespace == "pl" else f"pl.{info.namespace}.{info.name}"
            return self._operation(surface, info, spelling, node)
        if getattr(value, "__module__", "").startswith("pypto.language"):
            return self._pl_call((getattr(value, "__name__", name),), node)
        return None

    def helper_call(self, helper: Any, node: ast.Call) -> Expr:
        """A call of a ``@pl.jit.*`` helper; only jit specialisations have them."""
        self.fail(
            f"Unsupported function call: {ast.unparse(node.func)}",
            node,
            "@pl.jit helpers can be called from @pl.jit functions only",
            UnsupportedFeatureError,
        )

    # --- operators ----------------------------------------------------------------------------------------------------

    def _pl_call(self, parts: tuple[str, ...], node: ast.Call) -> Expr:
        name = parts[-1]
        if len(parts) == 1:
            construct = self.CONSTRUCTS.get(name)
            if construct is not None:
                return construct(self, node)  # type: ignore[no-any-return]
            function = NAMESPACES["pl"].get(name)
            if function is None:
                close = did_you_mean(f"pl.{name}", [f"pl.{known}" for known in NAMESPACES["pl"]])
                raise InvalidOperationError(
                    f"Unknown operation 'pl.{name}'",
                    self.span(node.func),
                    hint=close or "Operations of one level are under pl.tensor.*, pl.tile.*, pl.system.*, pl.array.*",
                )
            return self._operation(function, INFO[function], f"pl.{name}", node)
        if len(parts) == 2 and parts[0] in _OP_NAMESPACES:
            return self._namespace_call(parts[0], name, node)
        if len(parts) == 2 and name == "get_byte":
            dtype = BY_NAME.get(parts[0])
            if dtype is None:
                self.type_error(f"Unknown DataType: {parts[0]}", node)
            return ConstInt(dtype.get_byte(), DataType.INDEX, self.span(node))
        raw = IR_NAMESPACES["builtin.tensor"].get(name) if parts[:-1] == ("builtin", "tensor") else None
        if raw is not None and any(keyword.arg == "attrs" for keyword in node.keywords):
            # What a pass makes of a host collective. Users have pld.tensor.*: without the pass's attrs it is refused.
            return self._operation(raw, INFO[raw], f"pl.builtin.tensor.{name}", node)
        self._unsupported_call(node)

    def _namespace_call(self, namespace: str, name: str, node: ast.Call) -> Expr:
        construct = self.CONSTRUCTS.get(f"{namespace}.{name}")
        if construct is not None:
            return construct(self, node)  # type: ignore[no-any-return]
        function = NAMESPACES[namespace].get(name)
        if function is None or len(node.args) > function.__code__.co_argcount:
            # Printed forms of operations that have no name for users, or operands that users can't give.
            raw = IR_NAMESPACES.get(namespace, {}).get(name)
            function = raw if raw is not None else function
        if function is None:
            known = [*NAMESPACES[namespace]]
            raise InvalidOperationError(
                f"Unknown pl.{namespace} operation: {name}", self.span(node.func), hint=did_you_mean(name, known)
            )
        return self._operation(function, INFO[function], f"pl.{namespace}.{name}", node)

    def _pld_call(self, parts: tuple[str, ...], node: ast.Call) -> Expr:
        name = parts[-1]
        if len(parts) == 1:
            key = "pld"
        elif len(parts) == 2 and parts[0] in ("system", "tensor", "tile"):
            key = f"pld.{parts[0]}"
        else:
            raise InvalidOperationError(f"Unknown distributed category '{parts[0]}'", self.span(node.func))
        function = NAMESPACES[key].get(name)
        if function is None:
            raise InvalidOperationError(
                f"Unknown distributed operation 'pld.{'.'.join(parts)}'",
                self.span(node.func),
                hint=did_you_mean(name, NAMESPACES[key]),
            )
        if name in ("alloc_window_buffer", "world_size"):
            self._check_host_call(name, node)
        return self._operation(function, INFO[function], f"pld.{'.'.join(parts)}", node)

    def _check_host_call(self, name: str, node: ast.Call) -> None:
        """What only the host can do: allocate windows, under a name of their own, and count the ranks."""
        in_kernel = any(construct.kind in ("incore", "spmd") for construct in self.constructs)
        if self.level is not Level.HOST or in_kernel:
            self.fail(
                f"pld.{name}() can only be called in HOST orchestration context",
                node,
                "Call it in a function with level=pl.Level.HOST, outside kernel scopes",
            )
        if name == "alloc_window_buffer" and node is not self.named_call:
            self.fail(
                "pld.alloc_window_buffer() must appear as the RHS of a simple assignment",
                node,
                "Write buf = pld.alloc_window_buffer(...): the buffer is named after the variable",
            )

    def _operation(self, function: Any, info: Any, spelling: str, node: ast.Call) -> Expr:
        positions = info.attr_positions
        args = []
        for i, arg in enumerate(node.args):
            if type(arg) is ast.Starred:
                self.fail(
                    "Unsupported expression type: Starred", arg, "Write the arguments out", UnsupportedFeatureError
                )
            args.append(self.attr_argument(arg) if i in positions else self.argument(arg))
        kwargs = {}
        attrs: FrozenDict[str, Any] | None = None
        for keyword in node.keywords:
            key = keyword.arg
            if key is None:
                self.fail("Unsupported ** unpacking in an operation call", node)
            if key == "attrs":
                attrs = self.operation_attrs(keyword.value)
            elif key == "dtype":
                kwargs[key] = self.dtype(keyword.value)
            else:
                kwargs[key] = self.keyword_argument(keyword.value, key in info.attr_names)
        folded = self.fold_dim(spelling, args, kwargs) if spelling.endswith("dim") else None
        if folded is not None:
            return folded
        result = self.call_surface(function, args, kwargs, spelling, node)
        if attrs:
            result = result.replace(attrs=attrs)
        return result  # type: ignore[no-any-return]

    def call_surface(
        self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], spelling: str, node: ast.expr
    ) -> Any:
        """Call a surface function at the node's span; what it raises becomes an operation error at the call."""
        span = self.span(node)
        token = pin(span)
        try:
            return function(*args, **kwargs)
        except (ParserError, Suppressed):
            raise
        except BUG_CLASS_EXCEPTIONS:
            raise
        except (TypeError, ValueError) as error:
            raise self._operation_error(error, spelling, args, kwargs, span) from error
        except Exception as error:
            namespace, op = spelling.rsplit(".", 1)
            message = _misfit(error, [*args, *kwargs.values()]) or concise_error_message(error)
            raise InvalidOperationError(f"Error in {namespace} operation '{op}': {message}", span) from error
        finally:
            unpin(token)

    def _operation_error(
        self, error: Exception, spelling: str, args: Sequence[Any], kwargs: dict[str, Any], span: Span
    ) -> InvalidOperationError:
        namespace, op = spelling.rsplit(".", 1)
        message = concise_error_message(error)
        if not message.startswith((f"pl.{op}", f"{namespace}.{op}")):
            message = f"{namespace} operation '{op}': {message}"
        hint = None
        scalars_only = op in ("add", "sub", "mul", "div", "maximum", "minimum", "cmp")
        if scalars_only and any(level_of(a) == "scalar" for a in (*args, *kwargs.values())):
            hint = "For scalar arithmetic and comparison use Python operators (a + b, a < b)"
        return InvalidOperationError(message, span, hint=hint)

    # --- arguments of operators ---------------------------------------------------------------------------------------

    def argument(self, node: ast.expr) -> Any:
        """A positional operand: an expression, a list of them, or a Python value that no expression can hold."""
        kind = type(node)
        if kind is ast.List or kind is ast.Tuple:
            return [self.expr(e) for e in node.elts]  # type: ignore[attr-defined]
        if kind is ast.Constant:
            value = node.value  # type: ignore[attr-defined]
            return None if value is None else self.expr(node)
        if kind is ast.Name:
            found = self.scopes.lookup(node.id)  # type: ignore[attr-defined]
            if isinstance(found, Expr):
                items = found.type.types if isinstance(found.type, TupleType) else ()
                if items and all(isinstance(item, ScalarType) for item in items):  # `place = [row, 0]`, said as a list
                    return [TupleGetItemExpr(found, i, self.span(node)) for i in range(len(items))]
                return found
            value = MISSING if found is not None else self.closure.get(node.id)  # type: ignore[attr-defined]
            if isinstance(value, _ENUM_ARGUMENT) and not isinstance(value, int):
                return value
            if isinstance(value, (list, tuple)):
                return [self.as_expr(self.closure_value(v, node), node) for v in value]
            if value is None:
                return None
            if isinstance(value, (str, DataType)):
                return value
        elif kind is ast.Attribute:
            found = self.attribute_argument(node)
            if found is not MISSING:
                return found
        elif kind is ast.UnaryOp and type(node.op) is ast.USub and type(node.operand) is ast.Attribute:  # type: ignore[attr-defined]
            found = self.attribute_argument(node.operand)  # type: ignore[attr-defined]
            if isinstance(found, (int, float)) and not isinstance(found, enum.Enum):
                return -found
        value = self.operand(node)
        return value if isinstance(value, Expr) else self.number(value, self.span(node))

    def as_expr(self, value: Any, node: ast.expr) -> Expr:
        return value if isinstance(value, Expr) else self.number(value, self.span(node))

    def attribute_argument(self, node: ast.expr) -> Any:
        """``pl.FP32``, ``pl.Mem.Vec``, ``cfg.rows``: a dtype, an enum member or a number of the closure."""
        parts = dotted(node)
        if parts is None or self.scopes.lookup(parts[0]) is not None:
            return MISSING
        if len(parts) == 2 and parts[1] in BY_NAME and self.closure.alias(parts[0]) == "pl":
            return BY_NAME[parts[1]]
        value = self.closure.attribute_chain(parts)
        if isinstance(value, (*_ENUM_ARGUMENT, int, float, str)):
            return value
        if isinstance(value, (list, tuple)):
            return [self.as_expr(self.closure_value(v, node), node) for v in value]
        return MISSING

    def attr_argument(self, node: ast.expr) -> Any:
        """A compile-time argument: its Python value."""
        return self.keyword_argument(node, True)

    def keyword_argument(self, node: ast.expr, attr: bool) -> Any:
        kind = type(node)
        if kind is ast.Constant:
            return node.value  # type: ignore[attr-defined]
        if kind is ast.UnaryOp and type(node.op) is ast.USub and type(node.operand) is ast.Constant:  # type: ignore[attr-defined]
            value = node.operand.value  # type: ignore[attr-defined]
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return -value
        if kind is ast.Name:
            bound = self.scopes.lookup(node.id)  # type: ignore[attr-defined]
            if bound is None:
                value = self.closure.get(node.id)  # type: ignore[attr-defined]
                if value is not MISSING:
                    return self._raw_closure(value)
            return self.expr(node)
        if kind is ast.Attribute:
            found = self.attribute_argument(node)
            if found is not MISSING:
                return found
        if kind is ast.List or kind is ast.Tuple:
            return self._list_argument(node)
        if attr and self._only_closure_names(node):
            value = self.evaluate(node, speculative=True)
            if value is not MISSING:
                return self._raw_closure(value)
        value = self.argument(node)
        if attr and isinstance(value, (ConstInt, ConstFloat)):
            return value.value
        return value

    def _raw_closure(self, value: Any) -> Any:
        if getattr(value, "is_dynvar", False):
            return self.context.dynamic_var(value)
        wrapped = getattr(value, "_expr", None)
        return wrapped if isinstance(wrapped, Expr) else value

    def _list_argument(self, node: Any) -> Any:
        bound = any(type(e) is ast.Name and self.scopes.lookup(e.id) is not None for e in node.elts)
        if not bound and self._only_closure_names(node):
            value = self.evaluate(node, speculative=True)
            if value is not MISSING and not any(getattr(v, "is_dynvar", False) for v in value):
                return list(value)
        return [self.expr(e) for e in node.elts]

    def fold_dim(self, spelling: str, args: list[Any], kwargs: dict[str, Any]) -> Expr | None:
        """``pl.tensor.dim`` of a parameter's symbolic extent in an orchestration function is the symbol itself."""
        if self.func_type is not FunctionType.Orchestration or spelling not in ("pl.tensor.dim", "pl.dim"):
            return None
        tensor = args[0] if args else kwargs.get("tensor")
        axis = args[1] if len(args) > 1 else kwargs.get("axis")
        number = axis.value if isinstance(axis, ConstInt) else axis
        if not (isinstance(tensor, Var) and isinstance(tensor.type, TensorType) and isinstance(number, int)):
            return None
        if not -len(tensor.type.shape) <= number < len(tensor.type.shape):
            return None
        extent = tensor.type.shape[number]
        return extent if isinstance(extent, Var) and extent in self.declared_symbols else None

    # --- functions of the program -------------------------------------------------------------------------------------

    def method_call(self, name: str, node: ast.Call) -> Expr:
        """``self.f(...)``."""
        gvar, signature = self.method(name, node.func)
        attrs: dict[str, Any] = {}
        device: Expr | None = None
        attr_node: ast.expr | None = None
        named: dict[str, ast.expr] = {}
        for keyword in node.keywords:
            key = keyword.arg
            if key == "attrs":
                attr_node = keyword.value
            elif key == "device" and signature is not None and signature.role is Role.Orchestrator:
                device = self.expr(keyword.value)
            elif signature is not None and key in [p.name_hint for p in signature.params]:
                named[key] = keyword.value
            else:
                self._refuse_keyword(name, key, node)
        nodes = list(node.args)
        if named:
            assert signature is not None
            names = [p.name_hint for p in signature.params]
            for key in names[len(nodes) :]:
                if key not in named:
                    break
                nodes.append(named.pop(key))
            if named:
                self._refuse_keyword(name, next(iter(named)), node)
        args, overrides = self.call_arguments(nodes)
        if signature is not None:
            self._check_count(name, signature, len(args), node)
            self.check_arguments(name, signature, args, nodes)
        if overrides:
            attrs["arg_direction_overrides"] = overrides
        if device is not None:
            attrs["device"] = device
        if attr_node is not None:
            attrs = self.function_call_attrs(attr_node, args, attrs)
        attrs = self.with_dump_tags(attrs, args)
        kind = self.result_type(signature, args, node)
        return Call(gvar, args, {}, _ordered(attrs), kind, self.span(node))

    def method(self, name: str, node: ast.expr) -> tuple[GlobalVar, Signature | None]:
        """The GlobalVar and signature of a method of the program."""
        if name not in self.context.global_vars or not self.context.is_program:
            known = sorted(self.context.global_vars)
            raise UndefinedVariableError(
                f"Function '{name}' not defined in program",
                self.span(node),
                hint=did_you_mean(name, known) or f"Functions of the program: {', '.join(known)}",
            )
        return self.context.global_vars[name], self.context.signature(name)

    def _refuse_keyword(self, name: str, key: str | None, node: ast.Call) -> NoReturn:
        hints = {
            "deps": "Dependencies belong to a launch: out, tid = pl.submit(self.f, ..., deps=[...])",
            "dumps": "Use pl.submit(self.f, ..., dumps=[...]) or pl.dump_tag(t)",
            "core_num": "Use pl.spmd_submit(self.f, ..., core_num=n)",
            "sync_start": "Use pl.spmd_submit(self.f, ..., core_num=n, sync_start=True)",
        }
        self.type_error(f"Function '{name}' does not accept keyword argument '{key}'", node, hints.get(key or ""))

    def call_arguments(self, nodes: Sequence[ast.expr]) -> tuple[FrozenList[Expr], list[int]]:
        """Arguments of a function call or launch; ``pl.no_dep(x)`` is peeled and its position noted."""
        args, overrides = [], []
        for i, node in enumerate(nodes):
            if type(node) is ast.Call:
                parts = dotted(node.func)
                if (
                    parts is not None
                    and parts[-1] == "no_dep"
                    and (len(parts) == 1 or self.closure.alias(parts[0]) == "pl")
                ):
                    if len(node.args) != 1 or node.keywords:
                        self.fail("pl.no_dep takes exactly one positional argument", node)
                    overrides.append(i)
                    node = node.args[0]
            if type(node) is ast.Starred:
                self.fail("Unsupported expression type: Starred", node, None, UnsupportedFeatureError)
            args.append(self.expr(node))
        return FrozenList(args), overrides

    def _check_count(self, name: str, signature: Signature, count: int, node: ast.Call) -> None:
        if count != len(signature.params):
            self.type_error(
                f"Function '{name}' expects {len(signature.params)} argument(s), got {count}",
                node,
                f"Parameters: {signature.describe()}",
            )

    def check_arguments(self, name: str, signature: Signature, args: Sequence[Expr], nodes: Sequence[ast.expr]) -> None:
        """Kind, dtype, rank and static extents of each argument against the parameter."""
        for param, arg, node in zip(signature.params, args, nodes, strict=False):
            problem = mismatch(param.type, arg.type, arg)
            if problem is not None:
                self.type_error(
                    f"argument '{param.name_hint}' of function '{name}': parameter {problem}",
                    node,
                    f"Pass a value of type {param.type}",
                )

    def result_type(self, signature: Signature | None, args: Sequence[Expr], node: ast.expr) -> Type:
        """The type of a call: the declared results with the callee's symbols bound to the arguments' extents."""
        types = self.result_types(signature, args, node)
        if not types:
            return UnknownType()  # type: ignore[no-any-return]
        return types[0] if len(types) == 1 else TupleType(types)

    def result_types(
        self, signature: Signature | None, args: Sequence[Expr], node: ast.expr, declared_only: bool = False
    ) -> list[Type]:
        if signature is None:
            return []
        types: Sequence[Type] = signature.return_types
        if not types and not declared_only:
            function = self.context.functions.get(signature.name)
            types = inferred_return_types(function) if function is not None else []
        if not types:
            return []
        params = signature.params[: len(args)]
        return list(deduce_call_return_type(params, list(args), list(types)))

    def external_call(self, function: Function, node: ast.Call) -> Expr:
        """A bare call of a module-level ``@pl.function``: the function joins the program."""
        name = function.name
        if self.context.is_program and name in self.context.global_vars and name not in self.context.externals:
            self.fail(f"External function '{name}' conflicts with program function '{name}'", node)
        known = self.context.externals.get(name)
        if known is not None and known is not function:
            self.fail(f"Conflicting external functions with name '{name}'", node)
        self.context.externals[name] = function
        self.context.functions.setdefault(name, function)
        if node.keywords:
            self._refuse_keyword(name, node.keywords[0].arg, node)
        signature = Signature.of(function)
        args, overrides = self.call_arguments(node.args)
        self._check_count(name, signature, len(args), node)
        self.check_arguments(name, signature, args, node.args)
        attrs: dict[str, Any] = {"arg_direction_overrides": overrides} if overrides else {}
        attrs = self.with_dump_tags(attrs, args)
        gvar = self.context.global_var(name)
        return Call(gvar, args, {}, _ordered(attrs), self.result_type(signature, args, node), self.span(node))

    # --- cross-core buffers -------------------------------------------------------------------------------------------

    def note_buffer(self, var: Var, node: ast.expr) -> None:
        """Remember the keywords of ``b = pl.reserve_buffer(...)``, so that ``b.base`` can be read."""
        if type(node) is not ast.Call:
            return
        parts = dotted(node.func)
        if parts is None or parts[-1] not in ("reserve_buffer", "import_peer_buffer"):
            return
        values: dict[str, Any] = {
            k.arg: k.value.value for k in node.keywords if k.arg and type(k.value) is ast.Constant
        }
        if parts[-1] == "import_peer_buffer" and "base" not in values:
            key = (str(values.get("peer_func", "")), str(values.get("name", "")))
            peer = self.context.reserved_buffers.get(key, {})
            values["base"] = peer.get("base", -1)
        values.setdefault("base", -1)
        self.buffers[var] = BufferMetadata(values, self.span(node))

    # --- inline expansion ---------------------------------------------------------------------------------------------

    def inline_call(self, function: InlineFunction, node: ast.Call) -> Expr:
        from .inline import expand

        return expand(self, function, node)

    def yield_expression(self, node: ast.Call) -> Expr:
        raise NotImplementedError

    CONSTRUCTS: dict[str, Any]


def _misfit(error: Exception, operands: Sequence[Any]) -> str | None:
    """In the user's terms: the operand of a kind that the operation doesn't know, at which it stumbled."""
    culprit = error.obj if isinstance(error, AttributeError) else None
    for position, operand in enumerate(operands, 1):
        if culprit is not None and culprit is operand:
            return f"operand {position} is a {type(operand).__name__}, which this operation does not take"
        if isinstance(operand, Expr) and culprit is operand.type:
            if isinstance(culprit, UnknownType):
                return f"the type of operand {position} is not known here: annotate the variable that holds it"
            return f"operand {position} is of type {culprit}, which this operation does not take"
    return None


_ATTR_ORDER = ("dump_vars", "arg_directions", "arg_direction_overrides", "device")


def _ordered(attrs: dict[str, Any]) -> dict[str, Any]:
    known = {key: attrs[key] for key in _ATTR_ORDER if key in attrs}
    return {**known, **{key: value for key, value in attrs.items() if key not in known}}


__all__ = ["EMPTY_DICT", "EMPTY_LIST", "Calls", "ParserTypeError", "ScalarType", "TupleGetItemExpr"]
