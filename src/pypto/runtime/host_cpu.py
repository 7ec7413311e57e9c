"""Facts about this machine's CPU."""

from __future__ import annotations

import functools
import os
import platform
import sys

# What decides which instructions it has, as Linux spells it on x86, Arm and RISC-V. (Speeds and ids differ by core.)
_LINUX = frozenset(
    {"vendor_id", "cpu family", "model", "model name", "stepping", "flags"}
    | {"Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part"}
    | {"isa", "uarch"}
)
_MACOS = ("machdep.cpu.brand_string", "hw.cpufamily", "machdep.cpu.features", "machdep.cpu.leaf7_features")
_ONE_CORE = 16_384  # bytes of /proc/cpuinfo that hold the first core; all of it takes long with many cores


@functools.cache
def cpu_identity() -> str:
    """Text that differs between CPUs that need different code: the model and the features that the system names."""
    return f"{platform.machine()}\n{_features()}"


def _features() -> str:
    if sys.platform == "darwin":
        import subprocess

        # It prints those that this CPU has, and complains of the others.
        found = subprocess.run(["sysctl", *_MACOS], capture_output=True, text=True, check=False)
        return found.stdout
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            text = file.read(_ONE_CORE).decode("utf-8", errors="replace")
    except OSError:  # Windows, BSD
        return platform.processor()
    first = text.partition("\n\n")[0].splitlines()
    return "\n".join(line for line in first if line.partition(":")[0].strip() in _LINUX)


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


__all__ = ["cpu_identity", "usable_cores"]
