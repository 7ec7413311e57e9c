"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import threading
from pathlib import Path


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{temporary_tag()}")
    data = content.encode() if isinstance(content, str) else content
    try:
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def temporary_tag() -> str:
    """What makes the name of a temporary file that of one thread of one process."""
    return f"{os.getpid()}-{threading.get_ident()}.tmp"


__all__ = ["temporary_tag", "write_file"]
