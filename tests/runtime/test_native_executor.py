"""Which calls of a compiled program run natively, and that they do what the interpreter does."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.codegen.cpu.kernel import KernelSource
from pypto.runtime import RunConfig, native_executor
from pypto.runtime.build import build
from pypto.runtime.compilers import CompilerNotFound, find_compiler
from pypto.runtime.emitted import EmittedProgram
from pypto.runtime.errors import ProgramError
from pypto.runtime.host_executor import RunOptions, TaskError
from pypto.runtime.native_executor import NotNative
from pypto.runtime.native_kernels import NativeKernels
from pypto.runtime.native_library import SOURCES

NATIVE = RunConfig(executor="native", workers=2)
INTERPRETER = RunConfig(executor="interpreter")


pytestmark = pytest.mark.usefixtures("usual_executor")


N = pl.dynamic("N")


@pl.program
class Scaled:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[N, 64], pl.FP32],
        first: pl.Scalar[pl.INDEX],
        gain: pl.Scalar[pl.FP32],
        y: pl.Out[pl.Tensor[[N, 64], pl.FP32]],
    ) -> pl.Tensor[[N, 64], pl.FP32]:
        for band in pl.parallel(4):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="scale"):
                t = pl.load(x, [first + band * 16, 0], [16, 64])
                y = pl.store(pl.add(pl.exp(t), gain), [band * 16, 0], y)
        return y


def compiled(tmp_path, program=Scaled):
    return ir.compile(program, str(tmp_path / "out"), dump_passes=False)


def arrays(n=64):
    x = np.random.default_rng(0).standard_normal((n, 64), dtype=np.float32)
    return x, np.zeros((n, 64), np.float32)


def test_a_native_run_gives_what_the_interpreter_gives(tmp_path):
    program = compiled(tmp_path)
    found = []
    for config in (NATIVE, INTERPRETER):
        x, y = arrays()
        outcome = program.execute([x, 0, 1.5, y], config=config)
        assert outcome.result is None
        found.append((outcome.executor, y))
    (one, native), (other, interpreted) = found
    assert (one, other) == ("native", "interpreter")
    np.testing.assert_allclose(native, interpreted, rtol=1e-6)
    np.testing.assert_allclose(native, np.exp(x) + np.float32(1.5), rtol=1e-6)


def test_outputs_that_are_left_out_are_allocated(tmp_path):
    x, _ = arrays(128)
    y = eight(x, config=NATIVE)
    np.testing.assert_array_equal(y, x)
    with pytest.raises(ValueError, match="contains dynamic dimensions"):
        compiled(tmp_path)(x, 0, 0.5, config=NATIVE)


def test_arrays_that_are_parts_of_others(tmp_path):
    """Rows at a distance, and columns that are not neighbours in memory: kernels are made for the first only."""
    program = compiled(tmp_path)
    base = np.random.default_rng(1).standard_normal((64, 128), dtype=np.float32)
    for x in (base[:, :64], base[:, ::2], np.asfortranarray(base[:, :64])):
        y = np.zeros((64, 64), np.float32)
        program(x, 0, 0.0, y, config=NATIVE)
        np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)
    wide = np.zeros((64, 192), np.float32)
    for y in (wide[:, 64:128], wide[:, ::3]):
        wide[:] = 0
        program(base[:, :64], 0, 0.0, y, config=NATIVE)
        np.testing.assert_allclose(y, np.exp(base[:, :64]), rtol=1e-6)
        assert np.count_nonzero(wide) == 64 * 64


def test_small_calls_are_interpreted_and_large_ones_native(tmp_path):
    program = compiled(tmp_path)
    x, y = arrays()
    assert program.execute([x, 0, 1.0, y]).executor == "interpreter"
    x, y = arrays(4096)
    assert program.execute([x, 0, 1.0, y]).executor == "native"
    x, y = arrays()
    assert program.execute([x, 0, 1.0, y]).executor == "native"  # it is compiled now


@pytest.mark.parametrize(
    "rows, config, begins",
    [(16, None, False), (16, NATIVE, True), (4096, None, True), (4096, INTERPRETER, False)],
)
def test_the_task_runtime_is_prepared_when_the_first_call_will_need_it(monkeypatch, rows, config, begins):
    """Before anything of the program is compiled."""
    events = []
    monkeypatch.setattr(native_executor, "prepare_task_runtime", lambda: events.append("runtime"))
    monkeypatch.setattr(native_executor.NativeExecutor, "make", lambda self: events.append("program") or 1 / 0)

    @pl.jit
    def copy(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], y)
        return y

    x, y = np.ones((rows, 64), np.float32), np.zeros((rows, 64), np.float32)
    with contextlib.suppress(ZeroDivisionError):
        copy(x, y, config=config)
    assert events == (["runtime", "program"] if begins else [])


def test_a_program_that_is_called_often_is_compiled_beside_its_calls(tmp_path, monkeypatch):
    monkeypatch.setattr(native_executor, "_OFTEN_NS", 0)
    monkeypatch.setattr(native_executor, "_LONG_NS", 1 << 62)
    program = compiled(tmp_path)
    x, y = arrays()
    want = np.exp(x) + np.float32(1.0)
    executors = []
    while "native" not in executors:
        y[:] = 0
        executors.append(program.execute([x, 0, 1.0, y]).executor)
        np.testing.assert_allclose(y, want, rtol=1e-6)
    assert executors[0] == "interpreter" and set(executors[1:-1]) <= {"interpreter"}


PROGRAM = """
import os, time
import numpy as np
import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig, native_executor

native_executor._OFTEN_NS = 0

@pl.program
class Copy:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], y)
        return y

program = ir.compile(Copy, {out!r}, dump_passes=False)
x, y = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
while not os.path.exists({begun!r}):
    assert program.execute([x, y]).executor == "interpreter"
    time.sleep(0.01)
"""


def run_with_slow_compiler(tmp_path, seconds, behind):
    """What a program prints that goes on while its C++ is being compiled."""
    real = find_compiler()
    slow = tmp_path / "slow-g++"
    begun = tmp_path / "begun"
    words = " ".join(map(shlex.quote, real.command))
    slow.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *orchestration.cpp*) touch {begun}; sleep {seconds};; esac\n'
        f'exec {words} "$@"\n'
    )  # fmt: skip
    slow.chmod(0o755)
    source = tmp_path / "script.py"
    source.write_text(PROGRAM.format(out=str(tmp_path / "out"), begun=str(begun)) + behind)
    environment = {**os.environ, "CXX": str(slow), "PYPTO_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, str(source)], env=environment, capture_output=True, text=True, timeout=50, check=True
    )
    return done.stdout


def test_nobody_waits_for_a_compiler_at_the_end_of_a_process(tmp_path):
    """Here it would take longer than the test may."""
    assert run_with_slow_compiler(tmp_path, 60, "print(y.sum())\n") == "256.0\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_while_a_compiler_is_at_work(tmp_path):
    """The child has neither the thread that waits for the compiler nor its locks."""
    behind = """
child = os.fork()
y[:] = 0
outcome = program.execute([x, y], config=RunConfig(executor="native"))
os.write(1, f"{outcome.executor} {y.sum()}\\n".encode())
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    assert run_with_slow_compiler(tmp_path, 2, behind) == "native 256.0\n" * 2


def test_the_environment_chooses_unless_the_call_does(tmp_path, monkeypatch):
    program = compiled(tmp_path)
    x, y = arrays(4096)
    monkeypatch.setenv("PYPTO_EXECUTOR", "interpreter")
    assert program.execute([x, 0, 1.0, y]).executor == "interpreter"
    assert program.execute([x, 0, 1.0, y], config=NATIVE).executor == "native"
    monkeypatch.setenv("PYPTO_EXECUTOR", "fast")
    with pytest.raises(ValueError, match="PYPTO_EXECUTOR must be one of auto, native, interpreter"):
        program(x, 0, 1.0, y)


@pytest.mark.parametrize(
    "option", [{"check_races": True}, {"trace": True}, {"schedule": "random"}, {"allow_overlap": True}]
)
def test_what_is_recorded_or_reordered_is_interpreted(tmp_path, option):
    program = compiled(tmp_path)
    x, y = arrays(4096)
    program(x, 0, 1.0, y)
    assert program.execute([x, 0, 1.0, y], config=RunConfig(**option)).executor == "interpreter"
    with pytest.raises(ValueError, match="leave these out, or the executor"):
        program(x, 0, 1.0, y, config=RunConfig(executor="native", **option))


def test_a_native_kernel_that_leaves_a_tensor_names_the_line(tmp_path):
    program = compiled(tmp_path)
    messages = []
    for config in (NATIVE, INTERPRETER):
        x, y = arrays()
        with pytest.raises(ProgramError) as caught:
            program(x, 1, 1.0, y, config=config)
        assert caught.value.source_line().startswith("t = pl.load(x, [first + band * 16, 0]")
        assert caught.value.function in ("scale", "main") and caught.value.task in ("scale#3", "#3")
        messages.append(str(caught.value))
    for message in messages:
        assert "tile.load: offset 49 with extent 16 is out of range in dimension 0, whose extent is 64" in message
    x, y = arrays()
    program(x, 0, 1.0, y, config=NATIVE)  # the next run works
    np.testing.assert_allclose(y, np.exp(x) + 1, rtol=1e-6)


def test_limits_of_a_native_run(tmp_path):
    program = compiled(tmp_path)
    x, y = arrays()
    assert program.execute([x, 0, 1.0, y], config=RunConfig(timeout=60.0)).executor == "native"
    assert program.execute([x, 0, 1.0, y], config=RunConfig(strict_rings=True)).executor == "native"
    np.testing.assert_allclose(y, np.exp(x) + 1, rtol=1e-6)
    if sys.platform != "win32":
        y[:] = 0
        program(x, 0, 1.0, y, config=RunConfig(isolate=True))
        np.testing.assert_allclose(y, np.exp(x) + 1, rtol=1e-6)


@pl.jit
def eight(x: pl.Tensor[[128, 64], pl.FP32], y: pl.Out[pl.Tensor[[128, 64], pl.FP32]]):
    with pl.manual_scope():
        for band in pl.range(8):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.store(pl.load(x, [band * 16, 0], [16, 64]), [band * 16, 0], y)
    return y


def test_the_windows_of_the_device():
    x, y = arrays(128)
    eight(x, y, config=RunConfig(executor="native", ring_task_window=4))  # it grows
    np.testing.assert_array_equal(y, x)
    with pytest.raises(TaskError, match="has more tasks than the window of ring"):
        eight(x, y, config=RunConfig(strict_rings=True, ring_task_window=4, workers=1))


@pl.program
class Hidden:
    @pl.function(type=pl.FunctionType.InCore)
    def add(
        self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.InOut[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        return pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), 1.0), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 64], pl.FP32]) -> pl.Tensor[[16, 64], pl.FP32]:
        for _i in pl.range(2):
            y = pl.create_tensor([16, 64], dtype=pl.FP32, manual_dep=True)
            x = self.add(x, y)
        return x


def test_what_has_no_native_form_says_why(tmp_path):
    program = compiled(tmp_path, Hidden)
    x, _ = arrays(16)
    with pytest.raises(NotNative, match="it returns a tensor that it makes, and makes tensors with manual_dep"):
        program(x, config=NATIVE)
    outcome = program.execute([x])
    assert outcome.executor == "interpreter"
    np.testing.assert_array_equal(outcome.result, x + 1 + 1)


def kernels_of(text):
    return NativeKernels([KernelSource("kernel_0", text, 0, [], [], [], [], frozenset())], [])


def test_kernels_read_only_the_headers_that_they_need():
    assert kernels_of("int64_t f();").text.startswith('#include "kernel/support.h"\n')
    names = """
    int64_t f(int64_t a, float b) {
        return std::abs(std::max<int64_t>(a, std::min<int64_t>(a, 1))) + int64_t(std::floor(b) + std::pow(b, b));
    }"""
    build([("kernels.cpp", kernels_of(names).text)], include_dirs=[SOURCES], flags=["-Werror", "-fopenmp-simd"])


def test_a_program_that_was_saved(tmp_path):
    compiled(tmp_path).output_dir  # noqa: B018 (it writes the files)
    program = ir.CompiledProgram.from_dir(tmp_path / "out")
    x, y = arrays()
    assert program.execute([x, 0, 2.0, y], config=NATIVE).executor == "native"
    np.testing.assert_allclose(y, np.exp(x) + 2, rtol=1e-6)


def test_without_a_compiler_the_interpreter_runs(tmp_path, monkeypatch, caplog):
    def missing():
        raise CompilerNotFound("no C++ compiler was found: install one")

    monkeypatch.setattr("pypto.runtime.build.find_compiler", missing)
    program = compiled(tmp_path)
    x, y = arrays(4096)
    for _ in range(2):
        assert program.execute([x, 0, 1.0, y]).executor == "interpreter"
    np.testing.assert_allclose(y[:64], np.exp(x[:64]) + 1, rtol=1e-6)
    assert [record.getMessage() for record in caplog.records if record.name == "pypto.runtime"] == [
        "the interpreter runs programs: no C++ compiler was found: install one"
    ]
    with pytest.raises(NotNative, match="no C\\+\\+ compiler was found"):
        program(x, 0, 1.0, y, config=NATIVE)


# --- what would stop the process --------------------------------------------------------------------------------------

FAULTS = {
    "loop": ("    for i in pl.range(8 // n):\n        y = self.row(x, 1, y)", "integer division by zero"),
    "signed": ("    for i in pl.range(8 // (n - m)):\n        y = self.row(x, 1, y)", "integer division by zero"),
    "modulo": ("    for i in pl.range(8 % n):\n        y = self.row(x, 1, y)", "integer modulo by zero"),
    "shift": ("    for i in pl.range(48 >> (n - 1)):\n        y = self.row(x, 1, y)", "shift distance -1 is outside"),
    "kernel": ("    y = self.row(x, n, y)", "integer modulo by zero"),
    "kernel shift": ("    y = self.shifted(x, n - 1, y)", "shift distance -1 is outside"),
}


@pytest.mark.parametrize("where", FAULTS)
def test_arithmetic_without_a_result_is_an_error_at_its_line(tmp_path, where):
    body, message = FAULTS[where]
    program = pl.parse(
        f"""import pypto.language as pl

@pl.program
class P:
  @pl.function(type=pl.FunctionType.InCore)
  def row(self, x: pl.Tensor[[4, 64], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[4, 64], pl.FP32]]
          ) -> pl.Tensor[[4, 64], pl.FP32]:
    return pl.store(pl.load(x, [3 % n, 0], [1, 64]), [0, 0], y)

  @pl.function(type=pl.FunctionType.InCore)
  def shifted(self, x: pl.Tensor[[4, 64], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[4, 64], pl.FP32]]
              ) -> pl.Tensor[[4, 64], pl.FP32]:
    return pl.store(pl.load(x, [48 >> n, 0], [1, 64]), [0, 0], y)

  @pl.function(type=pl.FunctionType.Orchestration)
  def main(self, x: pl.Tensor[[4, 64], pl.FP32], n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INDEX],
           y: pl.InOut[pl.Tensor[[4, 64], pl.FP32]]) -> pl.Tensor[[4, 64], pl.FP32]:
{body}
    return y
""",
        "case.py",
    )
    found = compiled(tmp_path, program)
    line = {"kernel": 8, "kernel shift": 13}.get(where, 18)
    for config in (NATIVE, INTERPRETER):
        x, y = arrays(4)
        with pytest.raises(ProgramError, match=message) as info:
            found(x, 0, 0, y, config=config)
        assert info.value.span.begin_line == line
        found(x, 5, 2, y, config=config)  # and the process goes on
        np.testing.assert_array_equal(y[0], x[3 if "kernel" in where else 0])


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:, :] = pl.matmul(a, b, out_dtype=pl.FP32)
    return c


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("isolate", [False, True], ids=["here", "isolated"])
def test_products_of_each_element_type(dtype, isolate):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (32, 32)).astype(np.float32) for _ in "ab")
    c = np.zeros((32, 32), np.float32)
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    product(a.astype(kind), b.astype(kind), c, config=RunConfig(executor="native", isolate=isolate))
    np.testing.assert_array_equal(c, a @ b)


@pl.program
class TwoKernels:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        first: pl.Scalar[pl.INDEX],
        y: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
        z: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ):
        for i in pl.range(16):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.store(pl.mul(pl.load(x, [first + i * 4, 0], [4, 64]), 2.0), [i * 4, 0], y)
            with pl.at(level=pl.Level.CORE_GROUP):
                z = pl.store(pl.add(pl.load(x, [i * 4, 0], [4, 64]), 1.0), [i * 4, 0], z)
        return y, z


def test_runs_with_unusual_strides_in_several_threads():
    """Each thread's kernels are called for that thread's run, however many begin and end meanwhile."""
    program = EmittedProgram(ir.PassManager().run_passes(TwoKernels), "main", native=True)
    wrong, errors = [], []

    def work(seed):
        for n in range(8):
            x = np.asfortranarray(np.random.default_rng(seed).standard_normal((64, 64), dtype=np.float32))
            y, z = np.zeros((2, 64, 64), np.float32)
            try:
                program.run([x, int(n == 5), y, z], RunOptions(workers=1))
            except ProgramError as error:
                errors.append((n, str(error)))
                continue
            if not (np.array_equal(y, x * 2) and np.array_equal(z, x + 1)):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert [n for n, _ in errors] == [5] * 5
    assert all("offset 61 with extent 4 is out of range" in text for _, text in errors)
