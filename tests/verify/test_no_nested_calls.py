"""NoNestedCalls: one failing and one passing program for each code, with Calls and with Submits."""

import pytest
from verify_kit import expect, holds, main, nodes, program, submit_of, swapped

from pypto import ir
from pypto.verify.codes import NestedCallErrorType
from pypto.verify.properties import IRProperty

P = IRProperty.NoNestedCalls
Code = NestedCallErrorType


@pytest.mark.parametrize(
    "body, codes",
    [
        ("a = pl.add(x, pl.exp(x))\nreturn a", [201]),
        ("a = pl.add(pl.neg(pl.exp(x)), pl.exp(x))\nreturn a", [201, 201, 201]),
        ("pl.write(f, [0], pl.read(f, [1]))\nreturn x", [201]),
        ("y = self.k(pl.exp(x), y)\nreturn y", [201]),
        ("y = self.k(self.k(x, y), y)\nreturn y", [201]),
        ("a = pl.read(f, [0]) > pl.read(f, [1])\nreturn x", [204, 204]),
        ("a = -pl.read(f, [0])\nreturn x", [205]),
        ("if pl.read(f, [0]) > pl.read(f, [1]):\n    a = pl.exp(x)\nreturn x", [204, 204]),
        (
            "for i in pl.range(pl.read(f, [0]), pl.read(f, [1]), pl.read(f, [2])):\n    a = pl.exp(x)\nreturn x",
            [203] * 3,
        ),
        ("while pl.read(f, [0]) > pl.read(f, [1]):\n    a = pl.exp(x)\nreturn x", [204, 204]),
        # where there is no code of its own, it is that of an argument
        ("return pl.exp(x)", [201]),
        ("a, b = pl.exp(x), pl.neg(x)\nreturn a", [201, 201]),
        ("for i, (s,) in pl.range(4, init_values=(pl.exp(x),)):\n    r = pl.yield_(pl.neg(s))\nreturn r", [201, 201]),
        ("if n > 0:\n    r = pl.yield_(pl.exp(x))\nelse:\n    r = pl.yield_(x)\nreturn r", [201]),
        ("for b in pl.spmd(pl.read(f, [0])):\n    t = pl.load(x, [b, 0], [1, 8])\nreturn x", [201]),
        ("a = pl.create_tensor([pl.read(f, [0]), 8], dtype=pl.FP32)\nreturn x", [201]),
    ],
)
def test_each_position(body, codes):
    messages = expect(P, program(body), *codes, says="assign it to a variable first")
    assert len(set(messages)) >= 1


def test_flat_program():
    holds(P, program("a = pl.exp(x)\nb = pl.read(f, [n])\nif b > b:\n    y = self.k(a, y)\nreturn y"))


def test_whole_conditions():
    call = main(program("a = pl.read(f, [0])\nreturn x")).body.stmts[0].value
    for word, code in (("if", Code.CALL_IN_IF_CONDITION), ("while", Code.CALL_IN_WHILE_CONDITION)):
        node = program(f"{word} n > 0:\n    a = pl.exp(x)\nreturn x")
        [stmt] = nodes(main(node), ir.IfStmt, ir.WhileStmt)
        expect(P, swapped(node, stmt, stmt.replace(condition=call)), code)


def test_access_to_an_element_of_a_tuple():
    node = program("a, b = x, x\nreturn a")
    [item, _] = nodes(main(node), ir.TupleGetItemExpr)
    call = ir.Call(ir.GlobalVar("pair"), [], item.tuple.type, item.span)
    expect(P, swapped(node, item, ir.TupleGetItemExpr(call, 0, item.span)), 201)


def test_operands_and_launch_fields_of_a_submit():
    node = program("a = pl.read(f, [0])\nwith pl.manual_scope():\n    y, t = pl.submit(self.k, x, y)\nreturn y")
    read = main(node).body.stmts[0].value
    [submit] = nodes(main(node), ir.Submit)
    holds(P, node)
    expect(P, swapped(node, submit, submit.replace(core_num=read)), 201)
    expect(P, swapped(node, submit, submit.replace(core_num=read + read)), 204, 204)
    launch = submit_of(main(program("y = self.k(x, y)\nreturn y")).body.stmts[0].value)
    for inner, outer in ((launch, "pl.exp(x)"), (launch, "self.k(x, y)")):
        holder = program(f"y = {outer}\nreturn y")
        [call] = nodes(main(holder), ir.Call)
        nested = swapped(holder, call, call.replace(args=type(call.args)([inner, *call.args[1:]])))
        [message] = expect(P, nested, 201)
        assert "call of 'k'" in message


def test_a_predicate_is_exempt():
    node = program("a = pl.read(f, [0])\nwith pl.manual_scope():\n    y, t = pl.submit(self.k, x, y)\nreturn y")
    read = main(node).body.stmts[0].value
    [submit] = nodes(main(node), ir.Submit)
    holds(P, swapped(node, submit, submit.replace(predicate=read > read)))


def test_deep_expressions():
    node = program("a = pl.read(f, [0]) + n\nreturn x")
    [total] = nodes(main(node), ir.Add)
    value = total
    for _ in range(5000):
        value = value + total.right
    for _ in range(5000):
        value = total.right + value
    expect(P, swapped(node, total, value), 205)
