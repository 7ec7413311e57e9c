"""The facades: ``pypto``, ``pypto.ir``, ``pypto.pypto_core``; what they hold, what importing them loads."""

import importlib
import inspect
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import pypto
from pypto import ir
from pypto._exports import lazy_exports, spread
from pypto.ir import enums

NODES = """
IRNode Expr Var IterArg MemRef WindowBuffer ConstInt ConstFloat ConstBool BinaryExpr UnaryExpr Add Sub Mul FloorDiv
FloorMod FloatDiv Min Max Pow Eq Ne Lt Le Gt Ge And Or Xor BitAnd BitOr BitXor BitShiftLeft BitShiftRight Abs Neg Not
BitNot Cast MakeTuple TupleGetItemExpr Call Submit Op GlobalVar Span Stmt AssignStmt IfStmt YieldStmt ReturnStmt ForStmt
WhileStmt SeqStmts EvalStmt BreakStmt ContinueStmt InlineStmt ScopeStmt InCoreScopeStmt ClusterScopeStmt
HierarchyScopeStmt SpmdScopeStmt SplitAivScopeStmt RuntimeScopeStmt CommDomainScopeStmt Function Program
Type UnknownType ScalarType TupleType PtrType WindowBufferType CommCtxType PrefetchAsyncContextType AsyncEventType
AsyncSessionType ShapedType TensorType DistributedTensorType TileType ArrayType TensorView TileView DataType
TensorLayout TileLayout PadValue CompactMode MemorySpace Mem PipeType CoreType FunctionType Level Role ParamDirection
ArgDirection ForKind ScopeKind SplitMode InlineLanguage NotifyOp WaitCmp AtomicType ReduceOp ArgEffect WriteChannel
""".split()
FUNCTIONS = """
add sub mul truediv floordiv mod pow eq ne lt le gt ge neg cast bit_and bit_or bit_xor bit_shift_left bit_shift_right
bit_not not_ and_ or_ min_ max_ attach_leading_comments is_incore_type level_to_linqu_level set_call_attrs make_call
""".split()
LAZY = """
IRBuilder IRVisitor IRMutator python_print python_print_type register_format_callback flatten_to_stmts collect_def_vars
find_yield_stmt get_last_yield_stmt substitute_expr substitute_stmt deep_clone deduce_call_return_type
ParentStmtAnalysis structural_equal assert_structural_equal structural_hash serialize deserialize serialize_to_file
deserialize_from_file create_op_call get_op is_op_registered get_op_memory_spec get_op_arg_effect
op_has_declared_arg_effects op_has_declared_arg_effect get_op_write_channel
""".split()


def fresh(code):
    """What a fresh interpreter prints for ``code``."""
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(pypto.__file__).parent.parent)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("name", [*NODES, *FUNCTIONS, *LAZY])
def test_names_of_ir(name):
    value = getattr(ir, name)
    assert callable(value)
    assert name in dir(ir)
    core = importlib.import_module("pypto.pypto_core.ir")
    assert name in dir(core)
    if name != "IRBuilder":
        assert getattr(core, name) is value


@pytest.mark.parametrize(
    "name", "builder directions formatter op operators printer tensor_view_semantics type utils comm_layout".split()
)
def test_helper_modules(name):
    module = importlib.import_module(f"pypto.ir.{name}")
    assert getattr(ir, name) is module
    assert fresh(f"from pypto import ir; print(ir.{name}.__name__)") == [f"pypto.ir.{name}"]


def test_members_of_exported_enums_do_not_hide_anything_else():
    owned = {*NODES, *FUNCTIONS, *LAZY}
    members = {member.name for cls in enums.EXPORTED for member in cls}
    assert not owned & members


def test_unknown_names():
    for module in (
        pypto,
        ir,
        importlib.import_module("pypto.pypto_core"),
        importlib.import_module("pypto.pypto_core.ir"),
    ):
        assert not hasattr(module, "no_such_name")
        with pytest.raises(AttributeError, match="no_such_name"):
            _ = module.no_such_name


def test_star_import():
    namespace = {}
    exec("from pypto.ir import *", namespace)
    for name in (*NODES, *FUNCTIONS, "FP32", "Vec", "AIV", "InCore", "structural_equal"):
        assert namespace[name] is getattr(ir, name)


def test_the_flat_builder_keeps_its_place():
    core = importlib.import_module("pypto.pypto_core.ir")
    assert core.IRBuilder is not ir.IRBuilder
    assert importlib.import_module("pypto.pypto_core").ir is core


def test_operators_by_module():
    operators = importlib.import_module("pypto.ir.operators")
    for name in operators.__all__:
        assert getattr(operators, name) is getattr(importlib.import_module("pypto.ir.scalar"), name)


# --- pypto ------------------------------------------------------------------------------------------------------------


def test_names_of_pypto():
    from pypto.diag import errors, logging

    for name in "Error InternalError check internal_check internal_check_span".split():
        assert getattr(pypto, name) is getattr(errors, name)
    for (
        name
    ) in "LogLevel get_log_level set_log_level log_debug log_info log_warn log_error log_fatal log_event".split():
        assert getattr(pypto, name) is getattr(logging, name)
    assert pypto.cast is ir.cast
    assert pypto.testing.__name__ == "pypto.pypto_core.testing"
    assert issubclass(pypto.InternalError, RuntimeError)
    core = importlib.import_module("pypto.pypto_core")
    assert (core.DataType, core.Error, core.LogLevel) == (pypto.DataType, pypto.Error, pypto.LogLevel)
    assert {"DataType", "DT_FP32", "ir", "testing"} <= set(dir(pypto))


def test_arith_is_one_module_under_two_names():
    arith = importlib.import_module("pypto.arith")
    assert importlib.import_module("pypto.pypto_core.arith") is arith
    assert pypto.arith is importlib.import_module("pypto.pypto_core").arith is arith


# --- what importing loads ---------------------------------------------------------------------------------------------

HEAVY = ("numpy", "ml_dtypes", "scipy", "torch", "rich", "typer", "msgspec", "subprocess", "dataclasses", "inspect")


def test_importing_pypto_loads_nothing_of_the_compiler():
    loaded = fresh("import sys, pypto; print(*[m for m in sys.modules if m.startswith('pypto')])")
    assert sorted(loaded) == ["pypto", "pypto._exports"]


def test_importing_ir_loads_nothing_heavy_and_nothing_from_above():
    plain = fresh("import sys; print(*sys.modules)")
    loaded = set(fresh("import sys, pypto.ir; print(*sys.modules)")) - set(plain)
    assert not loaded & set(HEAVY)
    rooms = {m.split(".")[1] for m in loaded if m.startswith("pypto.")}
    assert rooms <= {"ir", "diag", "_exports"}


# --- lazy names -------------------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of its own to try the mechanisms on."""
    root = tmp_path / "lazy_pretend"
    root.mkdir()
    (root / "__init__.py").write_text(
        "from pypto._exports import lazy_exports, spread\n"
        "table = spread({'lazy_pretend.inner': 'one two', 'lazy_pretend.absent': 'gone'})\n"
        "names = {**table, 'alias': 'lazy_pretend.inner'}\n"
        "__getattr__, __dir__ = lazy_exports(__name__, names, ['inner', 'work', 'broken'])\n"
    )
    (root / "inner.py").write_text("one, two = object(), object()\n")
    (root / "broken.py").write_text("import no_such_module_at_all\n")
    (root / "work.py").write_text(
        "from pypto.ir.callable_module import make_callable\n"
        "def work(a, *, b=2):\n    return a + b\n"
        "make_callable(__name__)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("lazy_pretend")
    for name in [m for m in sys.modules if m.split(".")[0] == "lazy_pretend"]:
        del sys.modules[name]


def test_lazy_exports(package):
    assert "one" not in vars(package)
    assert {"one", "two", "alias", "inner"} <= set(dir(package))
    inner = package.alias
    assert inner is package.inner is sys.modules["lazy_pretend.inner"]
    assert package.one is inner.one
    assert vars(package)["one"] is inner.one
    with pytest.raises(AttributeError, match="absent"):
        _ = package.gone
    # a module that is there but cannot be imported says why
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        _ = package.broken


def test_spread():
    assert spread({"m.n": "a b"}) == {"a": "m.n:a", "b": "m.n:b"}
    getattribute, _ = lazy_exports("pypto", {})
    with pytest.raises(AttributeError):
        getattribute("x")


@pytest.mark.parametrize("first", ["attribute", "module", "function"])
def test_a_module_that_can_be_called(package, first):
    if first == "module":
        importlib.import_module("lazy_pretend.work")
    elif first == "function":
        namespace = {}
        exec("from lazy_pretend.work import work", namespace)
        assert namespace["work"](1) == 3
    assert package.work(1, b=4) == 5
    assert package.work.work(1) == 3
    assert list(inspect.signature(package.work).parameters) == ["a", "b"]
    assert package.work is sys.modules["lazy_pretend.work"]


# --- pypto_core.testing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("raise_value_error", ValueError),
        ("raise_type_error", TypeError),
        ("raise_runtime_error", RuntimeError),
        ("raise_not_implemented_error", NotImplementedError),
        ("raise_index_error", IndexError),
        ("raise_generic_error", pypto.Error),
        ("raise_assertion_error", AssertionError),
        ("raise_internal_error", pypto.InternalError),
    ],
)
def test_raisers(name, error):
    with pytest.raises(error, match="^why$") as caught:
        getattr(pypto.testing, name)("why")
    assert type(caught.value) is error


def test_raisers_with_more():
    with pytest.raises(pypto.InternalError, match=r"^why \[f\.py:3:4\]$"):
        pypto.testing.raise_internal_error_with_span("why", "f.py", 3, 4)
    with pytest.raises(IndexError, match="^after$") as caught:
        pypto.testing.rethrow_with_message("index", "before", "after")
    assert str(caught.value.__cause__) == "before"
    with pytest.raises(ValueError, match="unknown kind"):
        pypto.testing.rethrow_with_message("color", "a", "b")
