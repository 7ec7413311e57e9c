"""Stepping through a program that runs: stops before statements and shows what the user's names hold."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from .._lazy import np
from ..diag.source import read_source_lines
from ..ir import stmt as st
from ..ir.expr import Var
from ..ir.program import Program
from ..ir.tree import walk
from ..ops.values import ArrayValue
from ..runtime.graph import InvalidTaskId, Task
from ..runtime.interpreter import Frame

_HELP = "n: next statement, c: continue, p NAME: show a value, l: source, w: where, q: quit"
_SSA_SUFFIX = re.compile(r"__(ssa_v\d+|rv_v\d+|iter_v\d+)$")
_EDGE = 2
_AROUND = 5


class DebuggerQuit(Exception):
    """The user left the debugger."""


class Debugger:
    """A hook for the interpreter's ``on_statement``.

    Stops at the given lines of ``filename``, reads commands from ``commands`` (stdin by default) and writes to
    ``output``. The end of the commands quits.
    """

    def __init__(
        self,
        filename: str | Path,
        lines: Iterable[int],
        commands: TextIO | None = None,
        output: TextIO | None = None,
    ) -> None:
        self.filename = Path(filename).resolve()
        self.lines = frozenset(lines)
        self._commands = commands
        self._output = output
        self._stepping = False
        self._clock = 0
        self._assigned: dict[Var, int] = {}  # when each variable was assigned last
        # The frames that run, outermost first: the line that each is at, and the statements of it that were reached.
        self._frames: list[tuple[Frame, tuple[str, int] | None, set[st.Stmt]]] = []
        # The lanes of a split region run in threads of their own.
        self._lock = threading.RLock()
        self.stops = 0

    # --- the hook -----------------------------------------------------------------------------------------------------

    def __call__(self, frame: Frame, stmt: st.Stmt) -> None:
        with self._lock:
            if self._arrives(frame, stmt) and (self._stepping or self._at_break(stmt)):
                self._stop(frame, stmt)
            self._note(stmt)

    def _arrives(self, frame: Frame, stmt: st.Stmt) -> bool:
        """Whether the program comes to a line anew: one line of source may be several statements."""
        span = stmt.span
        if not span.is_valid():
            return False
        place = (span.filename, span.begin_line)
        depth = next((i for i, known in enumerate(self._frames) if known[0] is frame), None)
        if depth is not None:
            del self._frames[depth + 1 :]
            _, last, reached = self._frames[depth]
            if place == last and stmt not in reached:
                reached.add(stmt)
                return False
            self._frames.pop()
        self._frames.append((frame, place, {stmt}))
        return True

    def _at_break(self, stmt: st.Stmt) -> bool:
        return stmt.span.begin_line in self.lines and Path(stmt.span.filename).resolve() == self.filename

    def _note(self, stmt: st.Stmt) -> None:
        """Remember the order of assignments, since several variables may have one name."""
        self._clock += 1
        variables: list[Var] = []
        if isinstance(stmt, st.AssignStmt):
            variables = [stmt.var]
        elif isinstance(stmt, st.ForStmt):
            variables = [stmt.loop_var, *stmt.iter_args, *stmt.return_vars]
        elif isinstance(stmt, st.WhileStmt):
            variables = [*stmt.iter_args, *stmt.return_vars]
        elif isinstance(stmt, st.IfStmt):
            variables = list(stmt.return_vars)
        for var in variables:
            self._assigned[var] = self._clock

    # --- talking ------------------------------------------------------------------------------------------------------

    def _print(self, text: str = "") -> None:
        print(text, file=self._output or sys.stdout)

    def _stop(self, frame: Frame, stmt: st.Stmt) -> None:
        self.stops += 1
        self._stepping = False
        self._print(f"{Path(stmt.span.filename).name}:{stmt.span.begin_line}  {self._source_line(stmt)}")
        names = visible_names(frame, self._assigned)
        width = max((len(name) for name in names), default=0)
        for name, value in names.items():
            self._print(f"  {name:<{width}}  {describe(value)}")
        while True:
            print("(pypto) ", end="", file=self._output or sys.stdout, flush=True)
            line = (self._commands or sys.stdin).readline()
            if not line:
                self._print()
                raise DebuggerQuit
            if self._command(line.split(), frame, stmt, names):
                return

    def _command(self, words: list[str], frame: Frame, stmt: st.Stmt, names: dict[str, Any]) -> bool:
        """Obey; whether the program goes on."""
        command, rest = (words[0], words[1:]) if words else ("", [])
        if command == "n":
            self._stepping = True
            return True
        if command == "c":
            return True
        if command == "q":
            raise DebuggerQuit
        if command == "p" and rest:
            for name in rest:
                if name in names:
                    self._print(f"{name} = {describe(names[name], whole=True)}")
                else:
                    known = ", ".join(names) or "none"
                    self._print(f"no value under the name '{name}' here. Names: {known}")
        elif command == "l":
            self._list(stmt)
        elif command == "w":
            self._where(frame, stmt)
        else:
            self._print(_HELP)
        return False

    def _source_line(self, stmt: st.Stmt) -> str:
        lines = read_source_lines(stmt.span.filename)
        at = stmt.span.begin_line - 1
        return lines[at].strip() if at < len(lines) else type(stmt).__name__

    def _list(self, stmt: st.Stmt) -> None:
        lines = read_source_lines(stmt.span.filename)
        here = stmt.span.begin_line
        for number in range(max(1, here - _AROUND), min(len(lines), here + _AROUND) + 1):
            mark = "->" if number == here else " *" if number in self.lines else "  "
            self._print(f"{mark} {number:>4}  {lines[number - 1]}".rstrip())

    def _where(self, frame: Frame, stmt: st.Stmt) -> None:
        parts = [f"function {frame.function}"]
        if frame.task:
            parts.append(f"task {frame.task}")
        if frame.in_kernel:
            parts.append(f"block {frame.ctx.block_idx} of {frame.ctx.block_num}")
            if frame.ctx.pipes is not None:
                parts.append(f"lane {frame.ctx.lane}")
        self._print(f"{stmt.span.filename}:{stmt.span.begin_line}: {', '.join(parts)}")


def break_lines(programs: Iterable[Program], filename: str | Path, wanted: Iterable[int]) -> dict[int, int | None]:
    """For each wanted line the first line from there on where a statement of the programs begins, or None."""
    file = Path(filename).resolve()
    found: set[int] = set()
    for program in programs:
        for node in walk(program):
            if isinstance(node, st.Stmt) and not isinstance(node, st.SeqStmts) and node.span.is_valid():
                if Path(node.span.filename).resolve() == file:
                    found.add(node.span.begin_line)
    return {line: min((n for n in found if n >= line), default=None) for line in wanted}


# --- values -----------------------------------------------------------------------------------------------------------


def visible_names(frame: Frame, assigned: dict[Var, int] | None = None) -> dict[str, Any]:
    """The user's names in a frame with their values; of several variables of one name the one assigned last."""
    when = assigned or {}
    chosen: dict[str, tuple[int, int, Any]] = {}
    for order, (var, value) in enumerate(frame.env.items()):
        name = _SSA_SUFFIX.sub("", var.name_hint)
        if name.startswith("_"):
            continue
        rank = (when.get(var, 0), order)
        if name not in chosen or rank > chosen[name][:2]:
            chosen[name] = (*rank, value)
    return {name: value for name, (_, _, value) in chosen.items()}


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"


_UNDEFINED = _Undefined()


def describe(value: Any, whole: bool = False) -> str:
    """A value for a reader: shape, element type, valid region, elements; more of these with ``whole``."""
    if isinstance(value, ArrayValue):
        return _describe_array(value, whole)
    if isinstance(value, Task):
        return f"task {value!r}" + ("" if value.done else " (has not run)")
    if value is None or isinstance(value, InvalidTaskId):
        return "no task"
    if isinstance(value, (tuple, list)):
        items = ", ".join(describe(v) for v in value)
        return f"({items})" if isinstance(value, tuple) else f"[{items}]"
    return repr(value)


def _describe_array(value: ArrayValue, whole: bool) -> str:
    head = f"{list(value.shape)} {value.dtype}"
    if not value.fully_valid:
        head += f", valid {list(value.valid)}"
    data, mask = value.valid_data(), value.valid_mask()
    if mask is not None and not mask.any():
        return f"{head}: undefined" if data.size else f"{head}: empty"
    if mask is not None and not mask.all():
        head += f", {int(mask.size - np.count_nonzero(mask))} of {mask.size} undefined"
    elements = _elements(data, mask, whole)
    return f"{head}:{'' if elements.startswith(chr(10)) else ' '}{elements}"


def _elements(data: Any, mask: Any, whole: bool) -> str:
    shown = data.astype(np.float32) if data.dtype.kind == "V" or data.dtype.name.startswith(("bf", "float")) else data
    if data.dtype.itemsize > 4:
        shown = data
    formatter = None
    if mask is not None and not mask.all():
        shown = shown.astype(object)
        shown[~mask] = _UNDEFINED
        formatter = {"object": lambda item: repr(item) if item is _UNDEFINED else f"{item:.4g}"}
    text: str = np.array2string(
        shown,
        threshold=200 if whole else 2 * _EDGE,
        edgeitems=4 if whole else _EDGE,
        precision=4,
        separator=", ",
        formatter=formatter,  # type: ignore[arg-type]
        max_line_width=120,
    )
    return f"\n{text}" if whole and "\n" in text else " ".join(text.split())


__all__ = ["Debugger", "DebuggerQuit", "break_lines", "describe", "visible_names"]
