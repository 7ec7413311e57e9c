"""Another name of :mod:`pypto.backend`: the same module object."""

import importlib
import sys

sys.modules[__name__] = importlib.import_module("pypto.backend")
