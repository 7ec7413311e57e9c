"""The kit can be imported by its name. All tests here compile C++; without a compiler there is nothing that could run."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def compiler(cpp_compiler):
    """All of these run C++."""
