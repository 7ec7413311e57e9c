"""The kit is importable by its name, as in tests/ir; so is the short notation for programs of tests/programs.

The generator of scalar programs of tests/frontend is imported as ``frontend.test_generated_meaning``.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))
sys.path.insert(0, str(Path(__file__).parent.parent))
