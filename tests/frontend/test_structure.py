"""Which IR each construct becomes: the printed bodies are written out from the language description."""

from __future__ import annotations

import textwrap

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import ParserSyntaxError, ParserTypeError, SSAViolationError, UndefinedVariableError
from pypto.frontend.function_parser import MAX_DEPTH

from .dsl import HEAD, body_text, check_error, kernel, opaque, parse, program


def expect(text: str, expected: str, function: str = "f") -> None:
    assert body_text(text, function) == textwrap.dedent(expected).strip("\n")
    node = parse(text)
    again = parse(node.as_python(format=False))
    ir.assert_structural_equal(node, again, enable_auto_mapping=True)
    assert again.as_python(format=False) == node.as_python(format=False)


def test_constants_fold_and_dsl_names_do_not() -> None:
    text = opaque("a = R * 2 // 3\nb = 7 / 2\nc = -n + R\nd = 2 ** 5\nreturn a").replace("@pl", "R = 6\n@pl", 1)
    expect(
        text,
        """
        a: pl.Scalar[pl.INDEX] = 4
        b: pl.Scalar[pl.FP32] = 3.5
        c: pl.Scalar[pl.INDEX] = -n + 6
        d: pl.Scalar[pl.INDEX] = 32
        return a
        """,
    )


def test_scalar_operators_promote_with_casts() -> None:
    expect(
        opaque("a = m + 1\nb = m + pl.const(1, pl.INT32)\nc = n == m\nd = min(n, 3)\ne = n ** 2 & 7\nreturn"),
        """
        a: pl.Scalar[pl.INDEX] = pl.cast(m, pl.INDEX) + 1
        b: pl.Scalar[pl.INT32] = m + pl.const(1, pl.INT32)
        c: pl.Scalar[pl.BOOL] = n == pl.cast(m, pl.INDEX)
        d: pl.Scalar[pl.INDEX] = pl.min(n, 3)
        e: pl.Scalar[pl.INDEX] = n ** 2 & 7
        return
        """,
    )


def test_annotation_restamps_an_int_literal() -> None:
    expect(opaque("a: pl.Scalar[pl.INT64] = 0\nreturn"), "a: pl.Scalar[pl.INT64] = pl.const(0, pl.INT64)\nreturn")


def test_python_operators_on_tensors_are_elementwise_ops() -> None:
    expect(
        kernel("a = x + x\nb = 2.0 * x\nc = 1.0 - x\nd = -x\ne = x / 2.0\nreturn a"),
        """
        a: pl.Tensor[[64, 128], pl.FP32] = pl.tensor.add(x, x)
        b: pl.Tensor[[64, 128], pl.FP32] = pl.tensor.muls(x, 2.0)
        c: pl.Tensor[[64, 128], pl.FP32] = pl.tensor.adds(pl.tensor.neg(x), 1.0)
        d: pl.Tensor[[64, 128], pl.FP32] = pl.tensor.neg(x)
        e: pl.Tensor[[64, 128], pl.FP32] = pl.tensor.divs(x, 2.0)
        return a
        """,
    )


def test_augmented_assignment() -> None:
    expect(
        kernel("x += 1.0\no[0:8, :] += x[0:8, :]\nreturn"),
        """
        x: pl.Tensor[[64, 128], pl.FP32] = pl.tensor.adds(x, 1.0)
        o: pl.Tensor[[64, 128], pl.FP32] = pl.tensor.assemble(o, pl.tensor.add(pl.tensor.slice(o, [8, 128], [0, 0]), pl.tensor.slice(x, [8, 128], [0, 0])), [0, 0])
        return
        """,
    )


def test_subscript_reads_of_the_specification() -> None:
    params = "q: pl.Tensor[[96, 8, 40], pl.FP16], r: pl.Scalar[pl.INDEX]"
    expect(
        kernel("a = q[r, 0:4]\nb = q[:, 2, 10:30]\nc = q[r, 1, 3]\nreturn", params),
        """
        a: pl.Tensor[[4, 40], pl.FP16] = pl.tensor.slice(q, [1, 4, 40], [r, 0, 0], [], [0])
        b: pl.Tensor[[96, 20], pl.FP16] = pl.tensor.slice(q, [96, 1, 20], [0, 2, 10], [], [1])
        c: pl.Scalar[pl.FP16] = pl.tensor.read(q, [r, 1, 3])
        return
        """,
    )


def test_symbolic_extent_of_a_range_simplifies() -> None:
    params = "x: pl.Tensor[[64, 128], pl.FP32], k: pl.Scalar[pl.INDEX], s: pl.Scalar[pl.INDEX]"
    assert "pl.tensor.slice(x, [s, 128], [k * s, 0])" in body_text(
        kernel("a = x[k * s : k * s + s, :]\nreturn", params)
    )


def test_tile_subscript_promotes_to_two_dimensions() -> None:
    with pytest.warns(UserWarning, match="auto-promoting to 2D shape"):
        shown = body_text(kernel("t = pl.load(x, [0, 0], [64, 128])\na = t[3, 8:24]\nreturn"))
    assert "a: pl.Tile[[1, 16], pl.FP32, pl.Mem.Vec]" in shown


def test_subscript_write_lifts_the_source_rank() -> None:
    params = "x: pl.Tensor[[8, 16, 32], pl.FP32], v: pl.Tensor[[16, 32], pl.FP32], i: pl.Scalar[pl.INDEX]"
    shown = body_text(kernel("x[i] = v\nreturn", params))
    assert "pl.tensor.assemble(x, pl.tensor.reshape(v, [1, 16, 32]), [i, 0, 0])" in shown


def test_branch_names_leak_and_share_one_variable() -> None:
    node = parse(opaque("if n > 1:\n    a = n\nelse:\n    a = n + 1\nreturn a"))
    branch = node.body[0]
    assert branch.then_body.var is branch.else_body.var is node.body[1].value[0]
    assert not branch.return_vars


def test_a_name_of_two_types_is_an_error_where_it_is_used() -> None:
    branches = "if n > 1:\n    a = n\nelse:\n    a = g\n"
    check_error(
        opaque(branches + "b = a\nreturn"),
        ParserTypeError,
        "'a' is pl.Scalar[pl.INDEX] on one path and pl.Scalar[pl.FP32] on another",
        "b = a",
    )
    assert isinstance(parse(opaque(branches + "return")), ir.Function)
    assert isinstance(parse(opaque(branches + "a = m\nreturn a")), ir.Function)


def test_branch_with_yields_has_results() -> None:
    expect(
        opaque("if n > 1:\n    z: pl.Scalar[pl.INDEX] = pl.yield_(n)\nelse:\n    z = pl.yield_(n + 1)\nreturn z"),
        """
        if n > 1:
            z: pl.Scalar[pl.INDEX] = pl.yield_(n)
        else:
            z: pl.Scalar[pl.INDEX] = pl.yield_(n + 1)
        return z
        """,
    )


def test_elif_is_a_nested_if() -> None:
    node = parse(opaque("if n > 1:\n    a = 1\nelif n > 0:\n    a = 2\nelse:\n    a = 3\nreturn"))
    assert isinstance(node.body[0].else_body, ir.IfStmt)


def test_carried_loop_without_a_yield_gets_synthetic_results() -> None:
    node = parse(opaque("for i, (a,) in pl.range(n, init_values=(n,)):\n    b = a + 1\nreturn a_out"))
    assert [v.name_hint for v in node.body[0].return_vars] == ["a_out"]


def test_loop_variable_dtype_follows_constant_bounds() -> None:
    node = parse(opaque("for i in pl.range(pl.const(4, pl.INT32)):\n    a = i\nreturn"))
    assert node.body[0].loop_var.type == ir.ScalarType(pl.INT32)
    node = parse(opaque("for i in pl.range(0, pl.const(4, pl.INT64)):\n    a = i\nreturn"))
    assert node.body[0].loop_var.type == ir.ScalarType(pl.INDEX)


def test_natural_loop_reuses_the_outer_variable() -> None:
    node = parse(opaque("a = n\nfor i in pl.range(3):\n    a = a + i\nreturn a"))
    assert node.body[0].var is node.body[1].body.var is node.body[2].value[0]


def test_while_forms() -> None:
    expect(
        opaque(
            "while n > 1:\n    n = n - 1\nfor (k,) in pl.while_(init_values=(n,)):\n    pl.cond(k < 9)\n    k2 = pl.yield_(k + 1)\nreturn k2"
        ),
        """
        while n > 1:
            n: pl.Scalar[pl.INDEX] = n - 1
        for (k,) in pl.while_(init_values=(n,)):
            pl.cond(k < 9)
            k2: pl.Scalar[pl.INDEX] = pl.yield_(k + 1)
        return k2
        """,
    )


def test_scope_attributes_and_placeholders() -> None:
    expect(
        program(
            "with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[x], dumps=[y], allow_early_resolve=True, windowize=True, "
            "optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=3)], name_hint='a') as t:\n"
            "    y[:] = pl.mul(x, 2.0)\n"
            "with pl.at(level=pl.Level.CORE_GROUP, deps=[t]):\n    z[:] = y\nreturn"
        ),
        """
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=3)], name_hint="a", no_dep_args=[x], dumps=[y], allow_early_resolve=True, windowize=True) as t:
            y: pl.Tensor[[32, 64], pl.FP32] = pl.tensor.assemble(y, pl.tensor.muls(x, 2.0), [0, 0])
        with pl.at(level=pl.Level.CORE_GROUP, deps=[t]):
            z: pl.Tensor[[32, 64], pl.FP32] = pl.tensor.assemble(z, y, [0, 0])
        return
        """,
        "main",
    )
    main = parse(program("with pl.at(level=pl.Level.CORE_GROUP) as t:\n    y[:] = x\nreturn"))["main"]
    assert main.body[0].value.op.name == "system.task_invalid"
    assert main.body[1].attrs["task_id_var"] is main.body[0].var


def test_spmd_forms() -> None:
    expect(
        program(
            "for i in pl.spmd(8, name_hint='q'):\n    y[i * 4 : i * 4 + 4, :] = x[i * 4 : i * 4 + 4, :]\n"
            "with pl.spmd(2):\n    z = self.k(x, 1.0, z)\nreturn"
        ),
        """
        for i in pl.spmd(8, name_hint="q_spmd"):
            y: pl.Tensor[[32, 64], pl.FP32] = pl.tensor.assemble(y, pl.tensor.slice(x, [4, 64], [i * 4, 0]), [i * 4, 0])
        with pl.spmd(2):
            z: pl.Tensor[[32, 64], pl.FP32] = self.k(x, 1.0, z)
        return
        """,
        "main",
    )


def test_submit_forms() -> None:
    expect(
        program(
            "y, t = pl.submit(self.k, x, 0.5, y)\n(y, z), u = pl.spmd_submit(self.two, x, y, z, core_num=4, deps=[t, None])\n"
            "r = pl.submit(self.plain, y)\n"
            "g = pl.system.task_dummy(deps=[t, u])\nreturn"
        ),
        """
        _submit_tmp: pl.Tuple[pl.Tensor[[32, 64], pl.FP32], pl.Scalar[pl.TASK_ID]] = pl.submit(self.k, x, 0.5, y)
        y: pl.Tensor[[32, 64], pl.FP32] = _submit_tmp[0]
        t: pl.Scalar[pl.TASK_ID] = _submit_tmp[1]
        _submit_tmp_1: pl.Tuple[pl.Tensor[[32, 64], pl.FP32], pl.Tensor[[32, 64], pl.FP32], pl.Scalar[pl.TASK_ID]] = pl.spmd_submit(self.two, x, y, z, deps=[t], core_num=4)
        y: pl.Tensor[[32, 64], pl.FP32] = _submit_tmp_1[0]
        z: pl.Tensor[[32, 64], pl.FP32] = _submit_tmp_1[1]
        u: pl.Scalar[pl.TASK_ID] = _submit_tmp_1[2]
        r: pl.Tuple[pl.Scalar[pl.TASK_ID]] = pl.submit(self.plain, y)
        g: pl.Scalar[pl.TASK_ID] = pl.system.task_dummy(deps=[t, u])
        return
        """,
        "main",
    )


def test_deps_of_array_elements_are_packed() -> None:
    shown = body_text(
        program(
            "ids = pl.array.create(3, pl.TASK_ID)\n"
            "y, t = pl.submit(self.k, x, 1.0, y, deps=[ids[j] for j in range(3) if j != 1])\nreturn"
        ),
        "main",
    )
    assert "_submit_deps_buf: pl.Array[2, pl.TASK_ID] = pl.array.create(2, dtype=pl.TASK_ID)" in shown
    assert "pl.array.update_element(_submit_deps_buf, 1, pl.array.get_element(ids, 2))" in shown
    assert "deps=[_submit_deps_buf]" in shown


def test_predicate_needs_its_producer_among_the_dependencies() -> None:
    good = "z2, t = pl.submit(self.k, x, 1.0, y)\n"
    check_error(
        program(
            "f, t = pl.submit(self.flag, flags)\ny, u = pl.submit(self.k, x, 1.0, y, predicate=(f[0] > 0))\nreturn"
        ).replace(
            "    @pl.function(type=pl.FunctionType.Orchestration)",
            "    @pl.function(type=pl.FunctionType.InCore)\n"
            "    def flag(self, a: pl.InOut[pl.Tensor[[4], pl.INT32]]) -> pl.Tensor[[4], pl.INT32]:\n"
            "        return a\n"
            "    @pl.function(type=pl.FunctionType.Orchestration)",
        ),
        ParserSyntaxError,
        "'t' is not in deps=",
    )
    parse(program(good + "y, u = pl.submit(self.k, x, 1.0, y, deps=[t], predicate=(flags[0] > 0))\nreturn"))


def test_calls_to_later_methods_are_typed() -> None:
    text = HEAD + textwrap.dedent("""
        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.Orchestration)
            def main(self, x: pl.Tensor[[4, 4], pl.FP32]):
                a, b = self.later(x)
                return a
            @pl.function(type=pl.FunctionType.Opaque)
            def later(self, x: pl.Tensor[[4, 4], pl.FP32]) -> tuple[pl.Tensor[[4, 4], pl.FP32], pl.Tensor[[4, 4], pl.FP32]]:
                return x, x
        """)
    main = parse(text)["main"]
    assert main.body[1].var.type == ir.TensorType([4, 4], pl.FP32)


def test_dynamic_dimensions_of_a_callee_follow_the_arguments() -> None:
    text = HEAD + textwrap.dedent("""
        N = pl.dynamic("N")
        @pl.program
        class P:
            @pl.function(type=pl.FunctionType.InCore)
            def k(self, x: pl.Tensor[[N, 4], pl.FP32]) -> pl.Tensor[[N, 4], pl.FP32]:
                return x
            @pl.function(type=pl.FunctionType.Orchestration)
            def main(self, x: pl.Tensor[[16, 4], pl.FP32]):
                y = self.k(x)
                return y
        """)
    assert parse(text)["main"].body[0].var.type == ir.TensorType([16, 4], pl.FP32)


def test_dim_of_a_parameter_folds_to_its_symbol() -> None:
    text = HEAD + textwrap.dedent("""
        N = pl.dynamic("N")
        @pl.function(type=pl.FunctionType.Orchestration)
        def f(x: pl.Tensor[[N, 4], pl.FP32]):
            n = pl.tensor.dim(x, 0)
            m = n + 1
            return m
        """)
    expect(text, "m: pl.Scalar[pl.INDEX] = N + 1\nreturn m")


def test_all_errors_of_a_function_are_reported() -> None:
    text = kernel("a = pl.adn(x, 1.0)\nb = a + 1\nc = pl.exp(y)\nif x:\n    d = 1\nreturn")
    with pytest.raises(Exception) as info:
        parse(text)
    found = list(info.value.all_errors())
    lines = text.splitlines()
    shown = [(str(e), lines[e.span["line"] - 1].strip()) for e in found]
    assert [line for _, line in shown] == ["a = pl.adn(x, 1.0)", "c = pl.exp(y)", "if x:"], shown


def test_the_first_error_wins_inside_a_carried_loop() -> None:
    check_error(
        opaque("for i, (a,) in pl.range(n, init_values=(n,)):\n    b = pl.yield_(a + nope)\nreturn"),
        UndefinedVariableError,
        "Undefined variable 'nope'",
        "pl.yield_(a + nope)",
    )


def test_strict_ssa() -> None:
    head = HEAD + "@pl.function(strict_ssa=True)\ndef f(n: pl.Scalar[pl.INDEX]):\n"
    check_error(head + "    a = n\n    a = n + 1\n    return a\n", SSAViolationError, "Variable 'a' is already defined")
    check_error(
        head + "    a = n\n    for i in pl.range(3):\n        a = a + i\n    return a\n",
        SSAViolationError,
        "already defined",
    )
    node = parse(head + "    for n in pl.range(3):\n        b = n\n    return n\n")
    assert isinstance(node, ir.Function)


def test_comments_go_to_the_next_statement() -> None:
    text = opaque(
        '"""About f."""\n# first\na = n  # trailing\n# above the loop\nfor i in pl.range(3):  # header\n    # inside\n    b = i\nreturn'
    )
    assert body_text(text) == textwrap.dedent("""
        # About f.
        # first
        # trailing
        a: pl.Scalar[pl.INDEX] = n
        # above the loop
        # header
        for i in pl.range(3):
            # inside
            b: pl.Scalar[pl.INDEX] = i
        return""").strip("\n")


def test_comment_at_the_end_of_a_block_is_dropped_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="tail-of-block comment"):
        shown = body_text(opaque("for i in pl.range(3):\n    b = i\n    # nothing follows\nreturn"))
    assert "nothing follows" not in shown


def test_func_attr_prologue() -> None:
    text = kernel("pl.func_attr({'keep': x, 'split': pl.SplitMode.LEFT_RIGHT, 'n': 3})\nreturn")
    node = parse(text)
    assert dict(node.attrs) == {"keep": node.params[0], "split": 2, "n": 3} or node.attrs["keep"] is node.params[0]
    assert node.split is pl.SplitMode.LEFT_RIGHT
    assert node.attrs["n"] == 3
    again = parse(node.as_python(format=False))
    ir.assert_structural_equal(node, again, enable_auto_mapping=True)


def test_static_print(capsys: pytest.CaptureFixture[str]) -> None:
    parse(opaque("pl.static_print('size', n, 3, f'<{n}>')\nreturn"))
    out = capsys.readouterr().out
    assert out.startswith("static_print [<string>:")
    assert out.rstrip().endswith("size n: pl.Scalar[pl.INDEX] 3: pl.Scalar[pl.INDEX] <n: pl.Scalar[pl.INDEX]>")


def test_directly_imported_names_and_module_aliases() -> None:
    text = textwrap.dedent("""
        import pypto.language as lang
        from pypto.language import load, store
        @lang.function(type=lang.FunctionType.InCore)
        def f(x: lang.Tensor[[8, 8], lang.FP32], o: lang.Out[lang.Tensor[[8, 8], lang.FP32]]):
            t = load(x, [0, 0], [8, 8])
            o = store(lang.exp(t), [0, 0], o)
            return o
        """)
    assert "pl.tile.exp(t)" in body_text(text)


def test_closure_attribute_chains_fold() -> None:
    text = HEAD + textwrap.dedent("""
        class cfg:
            rows = 8
        DIMS = (4, 16)
        @pl.function
        def f(n: pl.Scalar[pl.INDEX]):
            a = n + cfg.rows * 2
            b = n + DIMS[1]
            return a
        """)
    expect(text, "a: pl.Scalar[pl.INDEX] = n + 16\nb: pl.Scalar[pl.INDEX] = n + 16\nreturn a")


def test_deep_nesting_is_a_clear_error() -> None:
    body = "".join("    " * i + f"if n > {i}:\n" for i in range(90)) + "    " * 90 + "a = n\n"
    assert isinstance(parse(opaque(body + "return")), ir.Function)
    # Python stops at 100 levels of indentation; an elif chain nests without indentation.
    chain = "if n > 0:\n    a = n\n" + "".join(f"elif n > {i}:\n    a = n\n" for i in range(1, MAX_DEPTH + 5))
    check_error(opaque(chain + "return"), ParserSyntaxError, "levels deep")


def test_long_operator_chain() -> None:
    node = parse(opaque("a = " + " + ".join(["n"] * 1500) + "\nreturn a"))
    assert isinstance(node.body[0].value, ir.Add)


def test_text_entry_points() -> None:
    with pytest.raises(ValueError, match=r"No @pl.function or @pl.program found"):
        pl.parse("x = 1")
    with pytest.raises(ValueError, match=r"Multiple functions/programs found"):
        pl.parse(opaque("return") + opaque("return").replace("def f", "def g"))
    with pytest.raises(SyntaxError, match="Failed to compile code"):
        pl.parse("def (:")
    with (
        pytest.raises(ValueError, match=r"Expected @pl.program but found @pl.function"),
        pytest.warns(DeprecationWarning),
    ):
        pl.parse_program(opaque("return"))
    node = pl.parse("@pl.function\ndef f(x: pl.Tensor[[Q, 4], pl.FP32]):\n    return x\n")
    assert node.params[0].type.shape[0].name_hint == "Q"


def test_source_map_moves_spans() -> None:
    node = pl.parse(opaque("a = n\nreturn a"), source_map={5: ("user.py", 77, 4)})
    assert str(node.body[0].span) == "user.py:77:5"
