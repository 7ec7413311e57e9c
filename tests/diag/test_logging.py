"""The compiler's log."""

import re
import sys
import threading

import pytest

from pypto.diag import logging as log
from pypto.diag.logging import LogLevel

WRITERS = [log.log_debug, log.log_info, log.log_warn, log.log_error, log.log_fatal, log.log_event]


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """As in a new process: no level chosen, none in the environment."""
    monkeypatch.setattr(log, "_chosen", None)
    monkeypatch.setattr(log, "_complained_about", set())
    monkeypatch.delenv("PYPTO_LOG_LEVEL", raising=False)
    yield
    log._clear_thread_log_level()


def letters(capsys):
    """Write at every level; the letters of what came through."""
    for write in WRITERS:
        write("message")
    return "".join(line.split(" | ")[0][-1] for line in capsys.readouterr().err.splitlines())


def test_levels():
    assert [(level.name, level.value) for level in LogLevel] == [
        ("DEBUG", 0),
        ("INFO", 1),
        ("WARN", 2),
        ("ERROR", 3),
        ("FATAL", 4),
        ("EVENT", 5),
        ("NONE", 6),
    ]


def test_format(capsys):
    log.log_info("a message | of two\nlines")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} I \| a message \| of two\nlines\n",
        captured.err,
    )


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (LogLevel.DEBUG, "DIWEFV"),
        (LogLevel.INFO, "IWEFV"),
        (LogLevel.WARN, "WEFV"),
        (LogLevel.ERROR, "EFV"),
        (LogLevel.FATAL, "FV"),
        (LogLevel.EVENT, "V"),
        (LogLevel.NONE, ""),
    ],
)
def test_threshold(capsys, level, shown):
    log.set_log_level(level)
    assert log.get_log_level() is level
    assert letters(capsys) == shown


def test_default_is_info(capsys):
    assert log.get_log_level() is LogLevel.INFO
    assert letters(capsys) == "IWEFV"


def test_level_from_the_environment(monkeypatch, capsys):
    monkeypatch.setenv("PYPTO_LOG_LEVEL", "eRRor")
    assert letters(capsys) == "EFV"
    log.set_log_level(LogLevel.FATAL)
    assert letters(capsys) == "FV"


def test_unknown_level_in_the_environment_is_told_once(monkeypatch, capsys):
    monkeypatch.setenv("PYPTO_LOG_LEVEL", "loud")
    assert log.get_log_level() is log.get_log_level() is LogLevel.INFO
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "PYPTO_LOG_LEVEL='loud' is ignored; the levels are debug, info, warn, error, fatal, event, none" in told


def test_set_takes_a_plain_int_and_refuses_others():
    log.set_log_level(3)
    assert log.get_log_level() is LogLevel.ERROR
    with pytest.raises(ValueError, match="17"):
        log.set_log_level(17)


def test_thread_override(capsys):
    log._set_thread_log_level(LogLevel.FATAL)
    assert letters(capsys) == "FV"
    assert log.get_log_level() is LogLevel.INFO  # pairs with set_log_level
    other = threading.Thread(target=log.log_info, args=("from another thread",))
    other.start()
    other.join()
    assert "from another thread" in capsys.readouterr().err
    log._clear_thread_log_level()
    assert letters(capsys) == "IWEFV"


def test_a_message_is_written_at_once(monkeypatch):
    class Pieces:
        def __init__(self):
            self.written = []

        def write(self, text):
            self.written.append(text)

        def flush(self):
            pass

    pieces = Pieces()
    monkeypatch.setattr(sys, "stderr", pieces)
    threads = [threading.Thread(target=log.log_warn, args=(f"from {n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pieces.written) == 8
    assert all(re.search(r" W \| from \d\n\Z", piece) for piece in pieces.written)
