"""The kit is importable by its name, as in tests/ir."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
