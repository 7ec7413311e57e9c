"""The helpers of this folder, and the programs and the code generation kit, are importable by their names."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("scaling", "codegen", "programs")]
