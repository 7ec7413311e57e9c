"""Which version of this package is installed."""

from __future__ import annotations

import functools
import os
import re
import sys

_RECORD = re.compile(r"pypto-([^-]+)\.(?:dist|egg)-info\Z")


@functools.cache
def installed_version() -> str | None:
    """The version, as the name of the installation's record says it; None: used from a source tree.

    ``importlib.metadata`` knows it, too, but takes longer to import than a small program takes to start.
    """
    for folder in sys.path:
        try:
            names = os.listdir(folder or os.curdir)
        except OSError:  # not there, or an archive
            continue
        for name in names:
            record = _RECORD.match(name)
            if record is not None:
                return record[1]
    return None


__all__ = ["installed_version"]
