"""What a compilation did and what it did not: nothing that a user asked for is dropped without a word."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CompileReport:
    """``executor`` runs the program; ``notes`` are facts that a reader of the options might not expect."""

    platform: str
    backend: str
    executor: str
    passes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"platform: {self.platform} (rules of {self.backend})",
            f"executor: {self.executor}",
            f"passes:   {len(self.passes)} run",
        ]
        return "\n".join(lines + [f"note:     {note}" for note in self.notes])


__all__ = ["CompileReport"]
