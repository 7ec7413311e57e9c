"""Short ways to write programs for verifiers and to say what is found in them."""

import textwrap

import pypto.language as pl
from pypto import ir
from pypto.ir.traversal import walk
from pypto.verify.diagnostics import Diagnostic
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import VERIFIERS, PropertyVerifierRegistry

HERE = ir.Span("hand.py", 3, 5)
INDEX = ir.ScalarType(ir.INDEX)

HEAD = """
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[8, 8], pl.FP32], b: pl.Out[pl.Tensor[[8, 8], pl.FP32]]) -> pl.Tensor[[8, 8], pl.FP32]:
        t = pl.load(a, [0, 0], [8, 8])
        r = pl.store(t, [0, 0], b)
        return r
"""
PARAMS = (
    "self, x: pl.Tensor[[8, 8], pl.FP32], f: pl.Tensor[[4], pl.INT32], n: pl.Scalar[pl.INDEX], "
    "y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]"
)


def program(body: str, kind: str = "Orchestration", result: str = "pl.Tensor[[8, 8], pl.FP32]") -> ir.Program:
    """A program with the kernel ``k`` and a function ``main(x, f, n, y)`` of this body."""
    decorator = f"    @pl.function(type=pl.FunctionType.{kind})\n    def main({PARAMS}) -> {result}:\n"
    return pl.parse(HEAD + decorator + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n", "case.py")


def main(node: ir.Program) -> ir.Function:
    """Its function ``main``."""
    return node.get_function("main")


def with_main(node: ir.Program, **changes) -> ir.Program:
    """The program with a changed ``main``."""
    old = main(node)
    return node.with_functions([old.replace(**changes) if f is old else f for f in node.functions.values()])


def nodes(node: ir.IRNode, *classes: type) -> list:
    """The nodes of these classes, in reading order."""
    return [item for item in walk(node) if type(item) in classes]


def swapped(node: ir.Program, old: ir.IRNode, new: ir.IRNode) -> ir.Program:
    """The program with one node of ``main`` in the place of another."""
    method = "visit_expr" if isinstance(old, ir.Expr) else "visit_stmt"

    class Swap(ir.IRMutator):
        pass

    def visit(self, op):
        return new if op is old else getattr(ir.IRMutator, method)(self, op)

    setattr(Swap, method, visit)
    Swap._build_tables()
    return with_main(node, body=Swap().visit_stmt(main(node).body))


def findings(prop: IRProperty, node: ir.Program) -> list[Diagnostic]:
    """What the verifier of a property finds."""
    return PropertyVerifierRegistry.verify(property_set(prop), node)


def expect(prop: IRProperty, node: ir.Program, *codes: int, function: str = "main", says: str = "") -> list[str]:
    """Exactly these codes are found, each with the rule's name, a place and the function's name; gives the messages."""
    found = findings(prop, node)
    assert [d.error_code for d in found] == list(codes), [d.message for d in found]
    for item in found:
        assert item.rule_name == VERIFIERS[prop].rule
        assert item.span.is_valid(), item.message
        assert f"'{function}'" in item.message and says in item.message, item.message
    return [item.message for item in found]


def holds(prop: IRProperty, node: ir.Program) -> None:
    """The verifier finds nothing."""
    assert [d.message for d in findings(prop, node)] == []


def submit_of(call: ir.Call, **fields) -> ir.Submit:
    """A submit of what a call calls."""
    return ir.Submit(call.op, call.args, fields.pop("deps", []), call.type, call.span, **fields)
