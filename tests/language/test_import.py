"""What importing the language costs, and which names it has."""

import subprocess
import sys
import textwrap

import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.dtype import BY_NAME
from pypto.ir.enums import TensorLayout


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_the_language_loads_nothing_heavy():
    heavy = ("numpy", "ml_dtypes", "torch", "pypto.ops", "pypto.jit", "pypto.passes", "pypto.codegen", "pypto.runtime")
    shown = run(f"""
        import sys
        import pypto.language, pypto.language.distributed
        print([name for name in {heavy!r} if name in sys.modules])
        import pypto.language as pl
        pl.add
        print([name for name in ("numpy", "ml_dtypes") if name in sys.modules], "pypto.ops" in sys.modules)
    """)
    assert shown.splitlines() == ["[]", "[] True"]


def test_importing_the_parser_installs_the_hook_once():
    shown = run("""
        import sys
        before = sys.excepthook
        import pypto.language
        first = sys.excepthook
        from pypto.language import parser
        print(first is not before, sys.excepthook is first)
    """)
    assert shown.split() == ["True", "True"]


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_dtypes(name):
    assert getattr(pl, name) is BY_NAME[name]


@pytest.mark.parametrize("name", sorted(TensorLayout.__members__))
def test_layouts(name):
    assert getattr(pl, name) is TensorLayout[name]


NAMES = """
    parser Tensor Tile Scalar Array Tuple DynVar dynamic InOut Out IntLike MemRef MemRefType Ptr PtrType
    TensorView TileView TaskId RUNTIME PrefetchAsyncContext AsyncEvent AsyncSession FunctionType ForKind Level
    Role SplitMode MemorySpace Mem PipeType TensorLayout TileLayout PadValue CompactMode AtomicType ScopeMode
    range parallel unroll pipeline while_ yield_ cond at cluster spmd split_aiv scope manual_scope optimizations
    split cross_core_slot submit spmd_submit no_dep adir const static_print static_assert func_attr dump_tag
    tensor tile system array prefetch DataType AUTO distributed
""".split()


@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_language(name):
    assert getattr(pl, name) is not None and name in {*pl.__all__, "distributed"}


@pytest.mark.parametrize(
    "name", ["AtomicType", "CommCtx", "CommCtxType", "DistributedTensor", "NotifyOp", "ReduceOp", "WaitCmp", "system"]
)
def test_names_of_the_distributed_language(name):
    assert getattr(pld, name) is not None and name in pld.__all__


def test_no_helper_leaks():
    assert not {"Any", "TYPE_CHECKING", "annotations", "import_module"} & set(pl.__all__)


def test_a_module_named_like_a_function_does_not_hide_it():
    import pypto.language.scope
    import pypto.language.typing.dynamic

    assert isinstance(pypto.language.scope, type) and callable(pypto.language.typing.dynamic)
