"""``@pl.jit.extern``: stubs of hand-written kernels."""

import numpy as np
import pytest

import pypto.language as pl

TENSOR = pl.Tensor[[16, 64], pl.FP32]


@pytest.fixture
def sources(tmp_path):
    folder = tmp_path / "src"
    (folder / "inc").mkdir(parents=True)
    (folder / "vector.cpp").write_text('#include "inc/shared.h"\nvoid kernel() {}\n')
    (folder / "cube.cpp").write_text("void kernel() {}\n")
    (folder / "inc" / "shared.h").write_text("// one\n")
    return folder


def stub(**options):
    @pl.jit.extern(**options)
    def scale(x: pl.Tensor, y: pl.Out[pl.Tensor], k: pl.FP32): ...

    return scale


def entry_of(kernel):
    @pl.jit
    def entry(x: TENSOR, y: pl.Out[TENSOR]):
        y = kernel(x, y, 2.0)
        return y

    return entry


def arrays():
    return np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32)


def test_a_single_core_kernel(sources, text_of):
    kernel = stub(source=str(sources / "vector.cpp"), include_dirs=[str(sources / "inc")])
    program = entry_of(kernel).specialize(*arrays())
    text_of(program)
    function = program["scale"]
    assert function.func_type is pl.FunctionType.AIV
    assert function.attrs["external_source"] == str(sources / "vector.cpp")
    assert function.attrs["extra_include_dirs"] == str(sources / "inc")
    assert function.return_types[0] == function.params[1].type


def test_a_mixed_kernel(sources, text_of):
    kernel = stub(
        core_type="mixed",
        aic_source=str(sources / "cube.cpp"),
        aiv_source=str(sources / "vector.cpp"),
        dual_aiv_dispatch=True,
    )
    program = entry_of(kernel).specialize(*arrays())
    text_of(program)
    kinds = {g.name: f.func_type.name for g, f in program.functions.items()}
    assert kinds == {"entry": "Orchestration", "scale": "Group", "scale_aic": "AIC", "scale_aiv": "AIV"}
    assert program["scale"].attrs["dual_aiv_dispatch"] is True


def test_the_key_follows_the_files(sources):
    entry = entry_of(stub(source=str(sources / "vector.cpp")))
    first = entry.compile(*arrays())
    assert entry.compile(*arrays()) is first
    (sources / "inc" / "shared.h").write_text("// two\n")
    assert entry.compile(*arrays()) is not first


def test_it_compiles_and_refuses_to_run_on_the_host(sources):
    entry = entry_of(stub(source=str(sources / "vector.cpp")))
    with pytest.raises(NotImplementedError, match="external C\\+\\+ kernel 'scale' cannot run on platform 'cpu'"):
        entry(*arrays())


def test_refused_options(sources):
    good = str(sources / "vector.cpp")
    for options, kind, phrase in (
        ({"core_type": "cube", "source": good}, ValueError, "core_type must be one of aic, aiv, mixed"),
        ({"source": good, "dual_aiv_dispatch": True}, ValueError, "dual_aiv_dispatch=True needs core_type='mixed'"),
        ({"core_type": "mixed", "aic_source": good}, ValueError, "needs both aic_source= and aiv_source="),
        ({}, ValueError, "source= is required"),
        ({"source": "nowhere.cpp"}, ValueError, "source file not found"),
        ({"source": good, "include_dirs": ["nowhere"]}, ValueError, "include directory not found"),
        ({"source": good, "include_dirs": "inc"}, TypeError, "include_dirs must be a list"),
    ):
        with pytest.raises(kind) as info:
            stub(**options)
        assert phrase in str(info.value)
