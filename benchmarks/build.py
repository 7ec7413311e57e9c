"""Cost of building native code: cold compiles by optimisation level, precompiled header, cache hits, parallel units.

    python benchmarks/build.py [--quick]

The source is like an emitted orchestration: it includes stddef.h, stdint.h, stdio.h and the runtime's own header, and
submits some tasks. A figure is the best of several runs: for the bare compiler its processor time, which other programs
disturb little, and for builds the time that a user waits, with an empty cache folder.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pypto.runtime
from pypto.runtime.build import Source, build, find_compiler
from pypto.runtime.compilers import LANGUAGE, SHARED_CODE
from pypto.runtime.host_cpu import usable_cores

NATIVE = Path(pypto.runtime.__file__).parent / "native"
HEADER = "pto_orchestration_api.h"

_HEAD = f"""\
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "{HEADER}"

extern "C" {{

__attribute__((visibility("default")))
PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs& orch_args) {{
    (void)orch_args;
    return PTO2OrchestrationConfig{{
        .expected_arg_count = 2,
    }};
}}

__attribute__((visibility("default")))
void aicpu_orchestration_entry(const ChipTaskArgs& orch_args) {{
    const ChipTensor& ext_x = orch_args.tensor(0).ref();
    const ChipTensor& ext_y = orch_args.tensor(1).ref();

    PTO2_SCOPE() {{
"""
_TASK = """\
        uint32_t t{i}_offsets[2] = {{{i}, 0}};
        uint32_t t{i}_shapes[2] = {{16, 64}};
        ChipTensor t{i} = ext_x.view(t{i}_shapes, t{i}_offsets);
        CoreTaskArgs params_t{i};
        params_t{i}.add_input(t{i});
        params_t{i}.add_inout(ext_y);
        params_t{i}.add_scalar(to_u64(static_cast<int64_t>({i})));
        rt_submit_aiv_task({i}, params_t{i});
"""
_TAIL = """\
    }
}

}  // extern "C"
"""
_HIT_IN_NEW_PROCESS = """\
import sys, time
import pypto.runtime.build as b
sources, native = [("orchestration.cpp", sys.stdin.read())], sys.argv[1]
start = time.perf_counter()
assert b.build(sources, include_dirs=[native]).cached
print(time.perf_counter() - start)
"""


def orchestration(tasks: int) -> str:
    """C++ text of an orchestration that submits so many tasks."""
    return _HEAD + "".join(_TASK.format(i=i) for i in range(tasks)) + _TAIL


def unit(number: int) -> Source:
    """A source with some code of its own, for libraries of several."""
    return (f"unit{number}.cpp", orchestration(40).replace("aicpu_orchestration", f"unit{number}"))


def seconds(action: Callable[[], object], runs: int) -> float:
    """The best time of several runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def processor_seconds(command: list[str], folder: str, runs: int) -> float:
    """The least processor time of several runs of a command."""
    times = []
    for _ in range(runs):
        before = os.times()
        subprocess.run(command, cwd=folder, check=True, stderr=subprocess.DEVNULL)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(times)


def cold(sources: list[Source], flags: list[str], runs: int) -> float:
    """Seconds of a build that finds nothing; what finding the compiler costs is left out."""

    def once() -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PYPTO_CACHE_DIR"] = folder
            assert not build(sources, include_dirs=[NATIVE], flags=flags).cached

    find_compiler()
    return seconds(once, runs)


def compiler_alone(text: str, level: str, precompiled: bool, runs: int) -> float:
    """Processor time of the bare compiler, with or without a precompiled header."""
    compiler = find_compiler()
    start = [*compiler.command, *LANGUAGE, level, *SHARED_CODE, *compiler.native]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "orchestration.cpp").write_text(text, encoding="utf-8")
        include = [f"-I{NATIVE}"]
        if precompiled:
            clang = compiler.kind != "gcc"
            made = Path(folder, f"{HEADER}.{'pch' if clang else 'gch'}")
            header = [*start, "-x", "c++-header", f"-I{NATIVE}", str(NATIVE / HEADER), "-o", str(made)]
            subprocess.run(header, check=True, stderr=subprocess.DEVNULL)
            include = ["-include-pch", str(made), *include] if clang else [f"-I{folder}", "-Winvalid-pch", *include]
        command = [*start, *include, "-shared", "orchestration.cpp", "-o", "library.so"]
        return processor_seconds(command, folder, runs)


def row(what: str, value: float, scale: float, unit_name: str) -> None:
    """Print one line of the table."""
    print(f"{what:<58} {value * scale:9.2f} {unit_name}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    runs = 3 if parser.parse_args().quick else 7
    compiler = find_compiler()
    print(f"{compiler.version}, {usable_cores()} cores, best of {runs} runs\n")
    for tasks in (0, 10, 50):
        text = orchestration(tasks)
        for level in ("-O0", "-O1", "-O2", "-O3"):
            plain, pch = (compiler_alone(text, level, precompiled, runs) for precompiled in (False, True))
            row(f"compile, {tasks} tasks, {level}", plain, 1e3, "ms")
            row(f"compile, {tasks} tasks, {level}, precompiled header", pch, 1e3, "ms")
    text = orchestration(10)
    sources: list[Source] = [("orchestration.cpp", text)]
    row("build, 10 tasks, nothing in the cache", cold(sources, [], runs), 1e3, "ms")
    row("build, 4 units at once", cold([unit(i) for i in range(4)], [], runs), 1e3, "ms")
    one_by_one = sum(cold([unit(i)], [], max(1, runs // 3)) for i in range(4))
    row("build, the same 4 units as libraries one by one", one_by_one, 1e3, "ms")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYPTO_CACHE_DIR"] = folder
        build(sources, include_dirs=[NATIVE])
        row("cache hit", seconds(lambda: build(sources, include_dirs=[NATIVE]), 200), 1e3, "ms")
        command = [sys.executable, "-c", _HIT_IN_NEW_PROCESS, str(NATIVE)]
        times = [
            float(subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout)
            for _ in range(runs)
        ]
        row("cache hit, the first of a process, without imports", min(times), 1e3, "ms")


if __name__ == "__main__":
    main()
