"""NoNestedInCore, SplitIncoreOrch, HierarchyOutlined, ClusterOutlined: which scopes may be where."""

import pytest
from verify_kit import HERE, expect, findings, holds, main, nodes, program, swapped, with_main

from pypto import ir
from pypto.verify.diagnostics import DiagnosticSeverity
from pypto.verify.properties import IRProperty

AT = "with pl.at(level=pl.Level.CORE_GROUP{}):\n    t = pl.load(x, [0, 0], [8, 8])\n    y = pl.store(t, [0, 0], y)\n"
ONE = AT.format("") + "return y"


def test_nested_kernel_scopes():
    node = program(AT.format(', name_hint="outer"') + "return y")
    [scope] = nodes(main(node), ir.InCoreScopeStmt)
    holds(IRProperty.NoNestedInCore, node)
    inner = ir.InCoreScopeStmt(name_hint="inner", body=scope.body, span=HERE)
    [message] = expect(
        IRProperty.NoNestedInCore,
        swapped(node, scope, scope.replace(body=inner)),
        501,
        says="Nested InCore scope detected",
    )
    assert "'inner' in 'outer'" in message
    # also through what stands between, and each of several
    loop = ir.WhileStmt(ir.ConstBool(True), [], ir.SeqStmts([inner, inner.replace()]), [])
    expect(IRProperty.NoNestedInCore, swapped(node, scope, scope.replace(body=loop)), 501, 501)
    holds(IRProperty.NoNestedInCore, program(AT.format("") + ONE))


def test_kernel_scope_left():
    p = IRProperty.SplitIncoreOrch
    for kind in ("Opaque", "Orchestration", "Graph"):
        node = program(ONE) if kind != "Opaque" else program(ONE, kind="Opaque")
        f = main(node)
        if kind == "Graph":
            params = list(zip(f.params, f.param_directions, strict=True))
            f = ir.Function(f.name, params, f.return_types, f.body, f.span, type=ir.FunctionType.Graph)
            node = node.with_functions([f])
        expect(p, node, 0, says="InCore ScopeStmt")
    expect(p, program(AT.format("") + ONE), 0, 0)
    holds(p, program("y = self.k(x, y)\nreturn y"))


def test_compute_in_orchestration_is_a_warning():
    node = program("a = pl.slice(x, [8, 8], [0, 0])\nb = pl.exp(a)\nc = pl.add(b, 1.0)\ny = self.k(c, y)\nreturn y")
    found = findings(IRProperty.SplitIncoreOrch, node)
    assert [(d.severity, d.error_code) for d in found] == [(DiagnosticSeverity.Warning, 1)] * 2
    assert "'tensor.exp'" in found[0].message and "'main'" in found[0].message and found[0].span.is_valid()
    holds(IRProperty.SplitIncoreOrch, program("b = pl.exp(x)\nreturn b", kind="Opaque"))


@pytest.mark.parametrize("level", ["HOST", "CHIP"])
def test_hierarchy_scope_left(level):
    body = f"with pl.at(level=pl.Level.{level}):\n    y = self.k(x, y)\nreturn y"
    expect(IRProperty.HierarchyOutlined, program(body, kind="Opaque"), 0, says="Hierarchy ScopeStmt")
    holds(IRProperty.HierarchyOutlined, program("y = self.k(x, y)\nreturn y", kind="Opaque"))
    holds(IRProperty.HierarchyOutlined, program(ONE, kind="Opaque"))


def test_cluster_and_spmd_scopes_left():
    p = IRProperty.ClusterOutlined
    spmd = "with pl.spmd(4):\n    y = self.k(x, y)\n"
    expect(p, program(spmd + "return y"), 0, says="Spmd ScopeStmt")
    cluster = "with pl.cluster():\n" + "".join(f"    {line}\n" for line in spmd.splitlines())
    expect(p, program(cluster + "return y"), 0, 0)
    group = with_main(program(spmd + "return y"), func_type=ir.FunctionType.Group)
    holds(p, group)
    holds(p, with_main(program(spmd + "return y"), func_type=ir.FunctionType.Spmd))
    holds(p, program("y = self.k(x, y)\nreturn y"))
