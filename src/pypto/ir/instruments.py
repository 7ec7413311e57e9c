"""The round trip of a program through its text, as a check behind each pass."""

from __future__ import annotations

import warnings
from typing import Any

from ..passes.instruments import CallbackInstrument
from .program import Program


def make_roundtrip_instrument() -> CallbackInstrument:
    """An instrument that prints the program after each pass, parses the text, and compares."""

    def check(pass_obj: Any, program: Program) -> None:
        check_roundtrip(program, pass_obj.get_name())

    return CallbackInstrument(after_pass=check, name="RoundtripInstrument")


def check_roundtrip(program: Program, pass_name: str) -> None:
    """Print, parse and compare a program; ``RuntimeError`` that names the pass when the IR does not come back.

    What :func:`as_parsed` says of programs built by hand is no difference.
    """
    from ..frontend.text import parse
    from .printer import python_print

    where = "[RoundtripInstrument]"
    try:
        text = python_print(program, format=False)
    except Exception as error:
        if "does not support iter_args" in str(error):
            warnings.warn(f"{where} IR not printable after pass '{pass_name}': {error}", UserWarning, stacklevel=2)
            return
        raise RuntimeError(f"{where} Printer failed after pass '{pass_name}': {error}") from error
    try:
        again = parse(text, "<roundtrip>")
    except Exception as error:
        raise RuntimeError(f"{where} Parse failed after pass '{pass_name}':\n{_rendered(error)}") from error
    try:
        assert isinstance(again, Program)
        _check_same(program, again)
    except ValueError as error:
        raise RuntimeError(
            f"{where} Structural equality failed after pass '{pass_name}': {error}\n--- Printed IR ---\n{text}"
        ) from error


def _check_same(program: Program, again: Program) -> None:
    """``ValueError`` with the first difference of a program and what its text gives."""
    from ..passes.convert_to_ssa import convert_to_ssa
    from ..passes.ctrl_flow_transform import ctrl_flow_transform
    from ..passes.errors import PassError
    from .equality import assert_structural_equal, structural_equal

    # Symbols of dynamic extents stand outside of all functions: the text makes new ones.
    if structural_equal(program, again, enable_auto_mapping=True):
        return
    try:
        assert_structural_equal(as_parsed(program), again, enable_auto_mapping=True)
    except ValueError:
        # Before SSA form it makes no difference whether assignments of one name are to one variable or to several, as
        # long as no read can tell. In SSA form that is gone.
        to_ssa, lower = convert_to_ssa(), ctrl_flow_transform()
        try:
            left, right = (to_ssa.run(lower.run(p)) for p in (as_parsed(program), again))
            same = structural_equal(left, right, enable_auto_mapping=True)
        except PassError:  # the user's error, which one of these passes is about to report
            same = True
        if not same:
            raise


def as_parsed(program: Program) -> Program:
    """A program built by hand in the form in which its text is parsed.

    Calls of unknown type get the type of their op's rule, and variables of unknown type that of their value; an op on a
    tensor and a scalar gets the name that says so (``tensor.adds``); a ``tile.load`` gets all of its operands; and what
    :class:`ParsedForm` does.
    """
    from ..ops.registry import create_op_call, is_op_registered
    from ..passes.parsed_form import ParsedForm
    from .expr import Call, Expr, GlobalVar, Op
    from .node import FrozenList
    from .stmt import AssignStmt, Stmt
    from .type import ScalarType, TensorType, UnknownType

    class Parsed(ParsedForm):
        def visit_call(self, op: Call) -> Expr:
            new: Any = super().visit_call(op)
            if type(new.op) is GlobalVar or not is_op_registered(new.op.name):
                return new  # type: ignore[no-any-return]
            name, args = new.op.name, list(new.args)
            if len(args) == 2 and isinstance(args[0].type, TensorType) and isinstance(args[1].type, ScalarType):
                name = f"{name}s" if is_op_registered(f"{name}s") else name
            if name == "tile.load" and len(args) == 3:
                args.append(args[2])
            kind = new.type
            if isinstance(kind, UnknownType):
                kind = create_op_call(name, args, dict(new.kwargs), new.span).type
            elif name == new.op.name and len(args) == len(new.args):
                return new  # type: ignore[no-any-return]
            return new.replace(op=Op(name), args=FrozenList(args), type=kind)  # type: ignore[no-any-return]

        def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
            new: Any = super().visit_assign_stmt(op)
            if isinstance(new.var.type, UnknownType) and not isinstance(new.value.type, UnknownType):
                var = self._remap[op.var] = new.var.replace(type=new.value.type)
                return new.replace(var=var)  # type: ignore[no-any-return]
            return new  # type: ignore[no-any-return]

    return Parsed().visit_program(program)  # type: ignore[no-any-return]


def _rendered(error: Exception) -> str:
    from ..diag.parser_errors import ParserError
    from ..diag.render import ErrorRenderer

    return ErrorRenderer(False).render(error) if isinstance(error, ParserError) else str(error)


__all__ = ["as_parsed", "check_roundtrip", "make_roundtrip_instrument"]
