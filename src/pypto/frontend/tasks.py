"""Task launches: ``pl.submit``, ``pl.spmd_submit``, dependencies, predicates, ``task_dummy``."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..ir import scalar as scalars
from ..ir.dtype import DataType
from ..ir.enums import ParamDirection
from ..ir.expr import COMPARISONS, Call, Cast, ConstInt, Expr, Submit, TupleGetItemExpr, Var, index_const
from ..ir.node import EMPTY_DICT, FrozenDict, FrozenList
from ..ir.span import Span
from ..ir.stmt import AssignStmt
from ..ir.type import TASK_ID_TYPE, ArrayType, ScalarType, TupleType, Type
from ..ops.registry import lookup
from ..ops.surface import NAMESPACES
from .calls import Calls
from .closure import MISSING, dotted
from .errors import ParserSyntaxError

_SIGNED = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64)
_SUBMIT_KEYWORDS = ("deps", "dumps", "allow_early_resolve", "predicate", "attrs")
_SPMD_KEYWORDS = (*_SUBMIT_KEYWORDS, "core_num", "sync_start")


def is_task_id(kind: Type) -> bool:
    return isinstance(kind, ScalarType) and kind.dtype is DataType.TASK_ID


def is_task_array(kind: Type) -> bool:
    return isinstance(kind, ArrayType) and kind.dtype is DataType.TASK_ID


class Tasks(Calls):
    """Launch syntax."""

    def submit_kind(self, node: ast.expr) -> str | None:
        """``submit`` or ``spmd_submit`` when the expression is such a call."""
        if type(node) is not ast.Call:
            return None
        parts = dotted(node.func)
        if parts is None or parts[-1] not in ("submit", "spmd_submit"):
            return None
        if len(parts) == 2 and self.closure.alias(parts[0]) == "pl":
            return parts[-1]
        if len(parts) == 1 and getattr(self.closure.get(parts[0]), "__module__", "").startswith("pypto.language"):
            return parts[-1]
        return None

    def launch_target(self, node: ast.Call, kind: str) -> tuple[Any, Any, str]:
        """GlobalVar, signature and name of the launched kernel."""
        if not node.args:
            self.fail(f"pl.{kind}() requires the kernel as its first argument", node)
        head = node.args[0]
        parts = dotted(head)
        if parts is None or len(parts) != 2 or parts[0] != "self":
            self.fail(
                f"pl.{kind}() first argument must be a `self.<kernel>` method reference",
                head,
                "Write pl.submit(self.kernel, x, y)",
            )
        gvar, signature = self.method(parts[1], head)
        return gvar, signature, parts[1]

    def launch(self, node: ast.Call, kind: str) -> Submit:
        """The Submit of a ``pl.submit(...)`` or ``pl.spmd_submit(...)`` call."""
        gvar, signature, name = self.launch_target(node, kind)
        nodes = node.args[1:]
        args, overrides = self.call_arguments(nodes)
        if signature is not None:
            self._check_launch_count(name, signature, len(args), node)
            self.check_arguments(name, signature, args, nodes)
        known = _SPMD_KEYWORDS if kind == "spmd_submit" else _SUBMIT_KEYWORDS
        keywords: dict[str, ast.expr] = {}
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg not in known:
                self._refuse_keyword(name, keyword.arg, node)
            keywords[keyword.arg] = keyword.value
        core_num = None
        if kind == "spmd_submit":
            if "core_num" not in keywords:
                self.fail("pl.spmd_submit() requires the core_num keyword", node)
            core_num = self.core_num(keywords["core_num"])
        sync_start = self.bool_literal(keywords.get("sync_start"), "sync_start")
        early = self.bool_literal(keywords.get("allow_early_resolve"), "allow_early_resolve")
        deps = self.dependencies(keywords["deps"]) if "deps" in keywords else FrozenList()
        predicate = None
        if "predicate" in keywords:
            predicate = self.predicate(keywords["predicate"], deps, True)
        attrs: dict[str, Any] = {"arg_direction_overrides": overrides} if overrides else {}
        if "dumps" in keywords:
            attrs["dump_vars"] = self.tensor_arguments(keywords["dumps"], args, "dumps", "submit")
        attrs = self.with_dump_tags(attrs, args)
        if "attrs" in keywords:
            attrs = self.function_call_attrs(keywords["attrs"], args, attrs, submit=True)
        if any(c.kind == "cluster" for c in self.constructs):
            self._check_cluster_launch(keywords, node)
        results = self.result_types(signature, args, node, declared_only=True)
        return Submit(
            gvar,
            args,
            deps,
            {},
            attrs,
            TupleType([*results, TASK_ID_TYPE]),
            self.span(node),
            core_num=core_num,
            sync_start=sync_start,
            allow_early_resolve=early,
            predicate=predicate,
        )

    def _check_cluster_launch(self, keywords: dict[str, ast.expr], node: ast.Call) -> None:
        carried = [k for k in ("deps", "core_num", "sync_start", "allow_early_resolve", "predicate") if k in keywords]
        if carried:
            self.fail(
                f"a launch inside pl.cluster() cannot carry per-task dispatch metadata ({', '.join(carried)})", node
            )

    def _check_launch_count(self, name: str, signature: Any, count: int, node: ast.Call) -> None:
        total = len(signature.params)
        least = 0
        for i, direction in enumerate(signature.directions):
            if direction is not ParamDirection.Out:
                least = i + 1
        inputs = sum(d is ParamDirection.In for d in signature.directions)
        if not inputs <= count <= total or count < min(least, total):
            self.type_error(
                f"Function '{name}' expects {inputs}..{total} argument(s), got {count}",
                node,
                f"Parameters: {signature.describe()}",
            )

    def emit_launch(self, targets: ast.expr, node: ast.Call, kind: str, annotation: Any = None) -> None:
        """The assignment forms of a launch."""
        if type(targets) is ast.Name:
            submit = self.launch(node, kind)
            var = self.assign(targets.id, submit, self.span(node), targets)
            del var
            return
        if type(targets) not in (ast.Tuple, ast.List) or len(targets.elts) != 2:  # type: ignore[attr-defined]
            self.fail(
                f"pl.{kind}() must be unpacked as exactly 2 targets",
                node,
                "Write out, tid = pl.submit(...) or (a, b), tid = pl.submit(...)",
            )
        result, task = targets.elts  # type: ignore[attr-defined]
        if type(task) is not ast.Name:
            self.fail(f"pl.{kind}(): the task_id target must be a plain variable name", task)
        names = [result] if type(result) is ast.Name else getattr(result, "elts", None)
        if names is None or not all(type(n) is ast.Name for n in names):
            self.fail(f"pl.{kind}(): the result target is a name or a flat tuple of names, no nested tuples", result)
        submit = self.launch(node, kind)
        kinds = submit.type.types  # type: ignore[attr-defined]
        if len(names) != len(kinds) - 1 and not (type(result) is ast.Name and len(kinds) == 1):
            self.type_error(
                f"pl.{kind}() unpacks {len(names)} result value(s) "
                f"but kernel '{submit.op.name}' returns {len(kinds) - 1}",
                node,
            )
        if len(kinds) == 1:
            self.type_error(
                f"pl.{kind}() unpacks 1 result value(s) but kernel '{submit.op.name}' returns 0",
                node,
                f"Annotate the results of '{submit.op.name}', or write task = pl.{kind}(...)",
            )
        span = self.span(node)
        temp = Var("_submit_tmp", submit.type, span)
        self.emit(AssignStmt(temp, submit, span))
        outputs = []
        for i, name in enumerate(names):
            outputs.append(self.assign(name.id, TupleGetItemExpr(temp, i, span), span, name))
        task_var = self.assign(task.id, TupleGetItemExpr(temp, len(kinds) - 1, span), span, task)
        self.note_producers(outputs, task_var)

    def note_producers(self, outputs: Sequence[Var], task_var: Var) -> None:
        """Remember which task made a tensor, for the check of predicates."""
        for output in outputs:
            self.producers[output] = (task_var, self.binding_counts.get(task_var, 0))

    # --- keyword values -----------------------------------------------------------------------------------------------

    def bool_literal(self, node: ast.expr | None, what: str) -> bool:
        if node is None:
            return False
        if type(node) is not ast.Constant or not isinstance(node.value, bool):
            self.fail(f"'{what}' must be a boolean literal", node)
        return node.value

    def core_num(self, node: ast.expr) -> Expr:
        """An integer scalar; a constant one is positive."""
        value = self.expr(node)
        if not (isinstance(value.type, ScalarType) and value.type.dtype.is_int_):
            self.fail(f"core_num must be an integer expression, got {value.type}", node)
        if type(value) is ConstInt and value.value <= 0:
            self.fail(f"core_num must be a positive integer, got {value.value}", node)
        return value

    def dependencies(self, node: ast.expr) -> FrozenList[Expr]:
        """``deps=``: task ids, arrays of them, elements of such arrays, comprehensions over Python ints."""
        if type(node) not in (ast.List, ast.Tuple, ast.ListComp):
            self.type_error("deps= must be a list / tuple / comprehension of task ids", node)
        entries: list[Expr] = []
        self._dependency_entries(node.elts if type(node) is not ast.ListComp else [node], entries, {})  # type: ignore[attr-defined]
        if all(isinstance(e, Var) for e in entries):
            return FrozenList(entries)
        if any(is_task_array(e.type) for e in entries):
            self.type_error("deps= cannot mix a whole TASK_ID array with per-element entries", node)
        return FrozenList([self._packed(entries, node)])

    def _dependency_entries(self, nodes: Sequence[ast.expr], entries: list[Expr], env: dict[str, int]) -> None:
        for node in nodes:
            kind = type(node)
            if kind is ast.Constant and node.value is None:  # type: ignore[attr-defined]
                continue
            if kind is ast.ListComp:
                self._dependency_comprehension(node, entries)  # type: ignore[arg-type]
                continue
            if kind is ast.Subscript or kind is ast.Name:
                if kind is ast.Name and self.scopes.lookup(node.id) is None and self.closure.get(node.id) is MISSING:  # type: ignore[attr-defined]
                    self.undefined(node.id, node)  # type: ignore[attr-defined]
                value = self.expr(node) if not env else self._with_env(node, env)
                if isinstance(value, Expr) and (is_task_id(value.type) or is_task_array(value.type)):
                    entries.append(value)
                    continue
            self.type_error(
                "deps= entries must be a TaskId variable, a TASK_ID array, or an element of one",
                node,
                "Capture the id: out, tid = pl.submit(...), or with pl.at(...) as tid:",
            )

    def _with_env(self, node: ast.expr, env: dict[str, int]) -> Expr:
        self.scopes.push()
        for name, value in env.items():
            self.scopes.bind(name, value)  # a Python number, so that the index folds
        try:
            return self.expr(node)
        finally:
            self.scopes.pop()

    def _dependency_comprehension(self, node: ast.ListComp, entries: list[Expr]) -> None:
        if len(node.generators) != 1:
            self.fail("deps= comprehension supports a single `for` clause", node)
        generator = node.generators[0]
        if type(generator.target) is not ast.Name:
            self.fail("deps= comprehension target must be a single name", generator.target)
        name = generator.target.id
        for part in (generator.iter, *generator.ifs):
            for inner in ast.walk(part):
                if type(inner) is ast.Name and inner.id != name and isinstance(self.scopes.lookup(inner.id), Expr):
                    self.type_error(f"deps= comprehension depends on an IR variable '{inner.id}'", inner)
        parts = dotted(generator.iter.func) if type(generator.iter) is ast.Call else None
        if parts is not None and len(parts) == 2 and self.closure.alias(parts[0]) == "pl":
            self.type_error("deps= comprehension: pl.range is a DSL loop; use Python's range", generator.iter)
        values = self.evaluate(generator.iter)
        try:
            items = list(values)
        except TypeError:
            self.type_error("deps= comprehension iterable did not produce a sequence", generator.iter)
        for item in items:
            if type(item) is not int:
                self.type_error(f"deps= comprehension gave a non-integer value {item!r}", generator.iter)
            if all(self._filter(test, name, item) for test in generator.ifs):
                self._dependency_entries([node.elt], entries, {name: item})

    def _filter(self, test: ast.expr, name: str, value: int) -> bool:
        namespace = {name: value}
        for inner in ast.walk(test):
            if type(inner) is ast.Name and inner.id != name:
                found = self.closure.get(inner.id)
                if found is not MISSING:
                    namespace[inner.id] = found
        return bool(eval(compile(ast.Expression(test), "<deps>", "eval"), {"__builtins__": {}}, namespace))

    def _packed(self, entries: Sequence[Expr], node: ast.expr) -> Var:
        """Entries that are not all variables, packed into an array of ids before the launch."""
        span = self.span(node)
        made = self.call_surface(
            NAMESPACES["array"]["create"], (len(entries), DataType.TASK_ID), {}, "pl.array.create", node
        )
        buffer = Var("_submit_deps_buf", made.type, span)
        self.emit(AssignStmt(buffer, made, span))
        for i, entry in enumerate(entries):
            updated = self.call_surface(
                NAMESPACES["array"]["update_element"],
                (buffer, index_const(i), entry),
                {},
                "pl.array.update_element",
                node,
            )
            self.emit(AssignStmt(buffer, updated, span))
        return buffer

    def predicate(self, node: ast.expr, deps: Sequence[Expr], has_deps: bool) -> Expr:
        """``predicate=``: one comparison between a tensor element and an integer literal."""
        if type(node) is not ast.Compare or len(node.ops) != 1:
            self.fail("predicate must be a single comparison", node, "For example predicate=(flags[0] > 0)")
        for side in (node.left, node.comparators[0]):
            self._check_predicate_index(side)
        value = self.expr(node)
        if type(value) not in COMPARISONS:
            self.fail("predicate must be a single comparison", node)
        reads = [_element_read(value.left), _element_read(value.right)]  # type: ignore[attr-defined]
        constants = [_strip(value.left), _strip(value.right)]  # type: ignore[attr-defined]
        found = [r for r in reads if r is not None]
        if len(found) != 1 or not any(type(c) is ConstInt for c in constants):
            self.fail("predicate must compare one tensor element with an integer literal", node)
        read = found[0]
        tensor = read.args[0]
        if tensor.type.dtype not in _SIGNED:  # type: ignore[attr-defined]
            self.type_error("predicate operand must be a signed 8/16/32/64-bit integer tensor", node)
        self._check_producer(tensor, deps, has_deps, node)
        return value

    def _check_predicate_index(self, node: ast.expr) -> None:
        if type(node) is not ast.Subscript:
            return
        base = self.expr(node.value)
        shape = getattr(base.type, "shape", None)
        items = list(node.slice.elts) if type(node.slice) is ast.Tuple else [node.slice]
        if shape is not None and len(items) != len(shape):
            self.type_error(f"predicate needs {len(shape)} index(es), got {len(items)}", node)
        for item in items:
            if type(item) is ast.Slice:
                self.fail("predicate must compare one tensor element", node)
            index = self.expr(item)
            if not (isinstance(index.type, ScalarType) and index.type.dtype.is_int_):
                self.type_error("predicate indices must be integer scalars", item)
            if type(index) is ConstInt and index.value < 0:
                self.type_error("predicate index must be non-negative", item)

    def _check_producer(self, tensor: Expr, deps: Sequence[Expr], has_deps: bool, node: ast.expr) -> None:
        record = self.producers.get(tensor) if isinstance(tensor, Var) else None
        if record is None or any(is_task_array(d.type) for d in deps):
            return
        task_var, count = record
        if any(d is task_var for d in deps) and self.binding_counts.get(task_var, 0) == count:
            return
        name, task = tensor.name_hint, task_var.name_hint  # type: ignore[attr-defined]
        hint = f"Add deps=[{task}]" if has_deps else f"Capture the task (as tid) and pass deps=[{task}]"
        raise ParserSyntaxError(
            f"predicate reads '{name}', which is produced by the task bound to '{task}', but '{task}' is not in deps=",
            self.span(node),
            hint,
        )

    # --- task_dummy ---------------------------------------------------------------------------------------------------

    def task_dummy(self, node: ast.Call) -> Expr:
        """``pl.system.task_dummy(deps=[...])``: a barrier task."""
        if node.args:
            self.type_error("pl.system.task_dummy must not use positional arguments", node)
        deps_node = None
        for keyword in node.keywords:
            if keyword.arg == "deps":
                deps_node = keyword.value
            elif keyword.arg != "attrs":
                self.type_error(f"pl.system.task_dummy does not accept keyword argument '{keyword.arg}'", node)
        if deps_node is None:
            self.type_error("pl.system.task_dummy requires keyword argument 'deps'", node)
        deps = self.dependencies(deps_node)
        attrs: dict[str, Any] = {"dummy_task": True}
        if deps:
            attrs["manual_dep_edges"] = FrozenList(deps)
        return Call.make(
            lookup("system.task_dummy").op, FrozenList(), EMPTY_DICT, FrozenDict(attrs), TASK_ID_TYPE, self.span(node)
        )

    def task_id_target(self, name: str, node: ast.expr, span: Span) -> Var:
        """The variable that ``as tid`` defines.

        A new one, with a placeholder ``tid = system.task_invalid()`` before the scope, which outlining replaces. But a
        name that is bound outside of the branch or loop that the scope stands in is assigned: the loop carries the id,
        and ``deps=[tid]`` of the next iteration means the task of this one.
        """
        found = self.bound_outside(name)
        if found is not None and found.type is TASK_ID_TYPE:
            self.note_assignment(found)
            if self.scopes.lookup(name) is None:
                self.scopes.bind(name, found)
            return found
        invalid = self.expr(ast.copy_location(ast.Constant(None), node))
        var = Var(name, TASK_ID_TYPE, span)
        self.scopes.bind(name, var)
        comments = self.comments.take_pending()
        self.body.append(AssignStmt(var, invalid, span))
        self.comments._pending = comments
        return var


def _strip(value: Expr) -> Expr:
    while type(value) is Cast:
        value = value.operand
    return value


def _element_read(value: Expr) -> Call | None:
    inner = _strip(value)
    return inner if type(inner) is Call and inner.op.name == "tensor.read" else None


__all__ = ["Tasks", "scalars"]
