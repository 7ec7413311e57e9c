"""The task runtime under ThreadSanitizer, and under AddressSanitizer with UndefinedBehaviorSanitizer.

    python tests/runtime/native/sanitize.py --seconds 600

builds ``stress.cpp`` with the runtime as one program for each, and runs it on random programs (``random_graph.py``). Needs
``src`` on PYTHONPATH or the package installed. A finding is printed, and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from random_graph import RandomProgram

from pypto.runtime.build import CompileFailed, build
from pypto.runtime.native_library import RUNTIME_UNITS, SOURCES

Kind = Literal["thread", "address"]
HERE = Path(__file__).parent
# Unoptimised: the sanitizers' checks make optimised code take minutes to compile.
FLAGS = {"thread": ["-O0", "-g1"], "address": ["-O0", "-g1", "-fsanitize=undefined", "-fno-sanitize-recover=undefined"]}
OPTIONS = {
    "TSAN_OPTIONS": "halt_on_error=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "ASAN_OPTIONS": "detect_stack_use_after_return=1",
}


class NoSanitizer(RuntimeError):
    """The compiler or the system has no such sanitizer; the text says what it said."""


def program(kind: Kind, sources: list, name: str) -> str:
    """The path of a program built with the sanitizers of that kind."""
    flags = ["-Wextra", *FLAGS[kind]]
    built = build(sources, include_dirs=[SOURCES], flags=flags, link=flags, name=name, sanitize=kind, executable=True)
    return str(built.path)


def run(command: list[str], timeout: float) -> tuple[int, str]:
    """Exit status, and all that was said."""
    done = subprocess.run(
        command, env={**os.environ, **OPTIONS}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout
    )
    return done.returncode, done.stdout.decode(errors="replace")


def require(kind: Kind) -> None:
    """Raises :class:`NoSanitizer` where a program built with it does not start."""
    try:
        status, text = run([program(kind, [("probe.cpp", "int main() { return 0; }")], "probe")], 60)
    except CompileFailed as error:
        raise NoSanitizer(f"the compiler has no sanitizer for {kind}: {error.output.strip()[:300]}") from None
    if status != 0:
        raise NoSanitizer(f"a program built with the sanitizer for {kind} does not run here: {text.strip()[:300]}")


def stress(kind: Kind, seeds: Iterable[int], seconds: float) -> tuple[int, str]:
    """Run the stress program on the random programs of these seeds: exit status, output."""
    require(kind)
    seeds = list(seeds)
    sources = [*RUNTIME_UNITS, HERE / "random_graph.cpp", HERE / "stress.cpp"]
    path = program(kind, sources, "stress")
    with tempfile.NamedTemporaryFile(prefix="pypto-stress-") as file:
        words = [len(seeds), *(word for seed in seeds for word in words_of(RandomProgram(seed)))]
        np.array([word % 2**64 for word in words], np.uint64).tofile(file.name)
        return run([path, file.name, str(seconds), str(seeds[0])], 10 * seconds + 120)


def words_of(program: RandomProgram) -> Iterator[int]:
    """A program as stress.cpp reads it."""
    yield from (len(program.words), *program.words, program.handles, *program.heap, len(program.edges))
    yield from (len(program.found), *program.found, len(program.arguments))
    for before, after in zip(program.arguments, program.results, strict=True):
        yield from before.shape
        yield from (before.size, *before.ravel().tolist(), after.size, *after.ravel().tolist())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long each of the two programs runs")
    parser.add_argument("--kind", choices=sorted(FLAGS), help="only this one")
    parser.add_argument("--seed", type=int, default=0, help="the first of the seeds of the random programs")
    parser.add_argument("--programs", type=int, default=200, help="how many random programs")
    options = parser.parse_args()
    worst = 0
    for kind in [options.kind] if options.kind else sorted(FLAGS):
        status, text = stress(kind, range(options.seed, options.seed + options.programs), options.seconds)
        print(f"{kind}: {'ok' if status == 0 else f'status {status}'}\n{text}")
        worst = max(worst, int(status != 0))
    return worst


if __name__ == "__main__":
    sys.exit(main())
