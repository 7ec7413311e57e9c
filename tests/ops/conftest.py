"""Makes the shared helpers of the op tests importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
