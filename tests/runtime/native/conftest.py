"""The kit can be imported by its name. All tests here compile C++; without a compiler there is nothing that could run."""

import sys
from pathlib import Path

import pytest

from pypto.runtime.compilers import CompilerNotFound, find_compiler

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def compiler():
    try:
        find_compiler()
    except CompilerNotFound as error:
        pytest.skip(f"the task runtime is C++, and there is no compiler: {error}")
