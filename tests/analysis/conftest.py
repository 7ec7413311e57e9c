"""The kit is importable by its name, as is the short notation for programs of tests/programs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))
