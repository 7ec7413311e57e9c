"""How often generated programs use each feature."""

from __future__ import annotations

from .harness import Counts


def statistics(counts: Counts) -> str:
    """A table: programs with each feature, then operations."""
    total = max(1, counts.programs)
    features = sorted(counts.features.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{n:6d} {100 * n / total:5.1f} %  {name}" for name, n in features if not name.startswith("op ")]
    ops = [f"{name.removeprefix('op ')} {n}" for name, n in features if name.startswith("op ")]
    return "\n".join([*lines, f"{len(ops)} operations: " + ", ".join(ops)])
