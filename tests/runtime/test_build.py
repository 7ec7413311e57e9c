"""Building shared libraries: what goes into the key, what is found again, what happens when something goes wrong."""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from pypto.runtime import build as module
from pypto.runtime import build_cache, compilers
from pypto.runtime.build import (
    CompileFailed,
    CompilerNotFound,
    LoadFailed,
    build,
    find_compiler,
    load,
)
from pypto.runtime.build_cache import MANIFEST, cache_folder, cache_limit

VISIBLE = 'extern "C" __attribute__((visibility("default"))) '
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="wrappers of the compiler are shell scripts")


def unit(name, value, body=""):
    """A source ``name.cpp`` with a function ``name()`` that returns a value."""
    return (f"{name}.cpp", f"{body}\n{VISIBLE}int {name}() {{ return {value}; }}\n")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and nothing remembered of earlier tests."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(folder))
    monkeypatch.delenv("PYPTO_CACHE_LIMIT", raising=False)
    monkeypatch.setattr(compilers, "_known", {})
    monkeypatch.setattr(build_cache, "_found", {})
    return folder


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The compiler of this machine, looked for once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYPTO_CACHE_DIR", str(tmp_path_factory.mktemp("compilers")))
        try:
            return find_compiler()
        except CompilerNotFound as error:
            pytest.skip(f"no C++ compiler here: {error}")


@pytest.fixture
def compiler(found, monkeypatch):
    """The compiler, already known: no test has to find it again."""
    monkeypatch.setitem(compilers._known, (os.environ.get("CXX"), os.environ.get("PATH")), found)
    return found


@pytest.fixture
def runs(monkeypatch):
    """Commands that the compiler was run with by :func:`build`."""
    commands, run = [], module.run_compiler
    monkeypatch.setattr(
        module, "run_compiler", lambda command, folder: commands.append(command) or run(command, folder)
    )
    return commands


def wrapper(path, script):
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{textwrap.dedent(script)}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def instant(compiler, tmp_path, monkeypatch):
    """A compiler that needs no time, for tests of the cache: its libraries hold its command line."""
    script = wrapper(
        tmp_path / "instant-c++",
        """\
        command=$*
        while [ "$1" != -o ]; do shift; done
        echo "$command" > "$2"
    """,
    )
    instant = msgspec.structs.replace(compiler, command=(str(script),), identity="instant")
    monkeypatch.setitem(compilers._known, (os.environ.get("CXX"), os.environ.get("PATH")), instant)


# --- building and finding again ---------------------------------------------------------------------------------------


def test_a_library_is_built_once_and_kept_with_what_it_was_made_of(compiler, runs, cache):
    first = build([unit("seven", 7)], name="numbers")
    assert not first.cached and first.seconds > 0
    assert load(first).seven() == 7
    assert first.path.parent.parent == cache and first.path.stem == "numbers"
    assert (first.path.parent / "seven.cpp").read_text() == unit("seven", 7)[1]
    assert first.command in (first.path.parent / "build.log").read_text()
    again = build([unit("seven", 7)], name="numbers")
    assert again.cached and (again.path, again.command) == (first.path, first.command)
    assert len(runs) == 1


def test_several_threads_try_a_compiler_once(compiler, monkeypatch):
    tried = []

    def examine(words):
        tried.append(words)
        time.sleep(0.05)
        return compiler

    monkeypatch.setattr(compilers, "_known", {})
    monkeypatch.setattr(compilers, "_examine", examine)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: compilers.find_compiler(), range(4)))
    assert found == [compiler] * 4
    assert len(tried) == 1


def test_the_command_line_makes_the_library_in_its_folder(compiler):
    built = build([unit("two", 2), unit("three", 3)])
    content = built.path.read_bytes()
    built.path.unlink()
    subprocess.run(built.command, cwd=built.path.parent, shell=True, check=True)
    assert len(built.path.read_bytes()) == len(content)
    assert load(built.path).three() == 3


def test_what_a_library_is_made_of_is_its_key(compiler, tmp_path):
    header = tmp_path / "include" / "deep" / "value.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define VALUE 1\n")
    source, include = unit("value", "VALUE", '#include "deep/value.h"'), [tmp_path / "include"]
    first = build([source], include_dirs=include)
    assert load(first).value() == 1
    assert build([source], include_dirs=include).cached
    header.write_text("#define VALUE 2\n")
    os.utime(header, ns=(1, 1))  # even if the clock did not advance, or went back
    changed = build([source], include_dirs=include)
    assert not changed.cached and load(changed).value() == 2
    header.write_text("#define VALUE 1\n")
    assert build([source], include_dirs=include).path == first.path
    others = [
        build([source], include_dirs=include, flags=["-DMORE"]),
        build([source], include_dirs=include, link=["-lm"]),
        build([source], include_dirs=include, name="other"),
        build([("other.cpp", source[1])], include_dirs=include),
    ]
    assert not any(built.cached for built in others)
    assert len({first.path, changed.path, *(built.path for built in others)}) == 6


@POSIX
def test_the_cpu_and_the_compiler_are_part_of_the_key(instant, monkeypatch):
    build([unit("one", 1)])
    monkeypatch.setattr(module, "cpu_identity", lambda: "another CPU")
    assert not build([unit("one", 1)]).cached
    assert build([unit("one", 1)]).cached
    updated = msgspec.structs.replace(find_compiler(), identity="an updated compiler")
    assert not build([unit("one", 1)], compiler=updated).cached


def test_a_source_may_be_a_file(compiler, tmp_path):
    path = tmp_path / "five.cpp"
    path.write_text(f"{VISIBLE}int five() {{ return five_of_these; }}\n")
    with pytest.raises(CompileFailed) as failure:
        build([path])
    assert f"{path}:1:" in str(failure.value)  # the file that the user has, not the copy
    path.write_text(f"{VISIBLE}int five() {{ return 5; }}\n")
    assert load(build([path])).five() == 5


def test_sources_may_include_each_other(compiler):
    built = build([("shared.h", "inline int shared() { return 6; }"), unit("six", "shared()", '#include "shared.h"')])
    assert load(built).six() == 6


def test_several_units_are_compiled_one_by_one_and_linked(compiler, runs):
    body = "int b(); int c();"
    built = build(
        [unit("a", "b() + c()", body), ("b.cpp", "int b() { return 20; }"), ("c.cpp", "int c() { return 3; }")]
    )
    assert load(built).a() == 23
    assert sum("-c" in command for command in runs) == 3 and len(runs) == 4
    left = {path.name for path in built.path.parent.iterdir()}
    assert left == {"a.cpp", "b.cpp", "c.cpp", "build.log", MANIFEST, built.path.name}


@pytest.mark.parametrize(
    "sources, message",
    [
        ([], "nothing to compile"),
        ([("only.h", "")], "nothing to compile"),
        ([("../up.cpp", "")], "can't be named"),
        ([("notes.txt", "")], "expected a name that ends in"),
        ([("a.cpp", "1"), ("a.cpp", "2")], "two sources are named a.cpp"),
    ],
)
def test_sources_that_make_no_sense(compiler, sources, message):
    with pytest.raises(ValueError, match=message):
        build(sources)


def test_settings_that_make_no_sense(compiler, tmp_path):
    with pytest.raises(ValueError, match="the include folder .*missing does not exist"):
        build([unit("one", 1)], include_dirs=[tmp_path / "missing"])
    with pytest.raises(ValueError, match="sanitize='memory': expected None, 'address' or 'thread'"):
        build([unit("one", 1)], sanitize="memory")
    with pytest.raises(ValueError, match="the library can't be named"):
        build([unit("one", 1)], name="a/b")
    with pytest.raises(FileNotFoundError, match=r"missing\.cpp"):
        build([tmp_path / "missing.cpp"])


# --- errors of the compiler -------------------------------------------------------------------------------------------


def test_the_error_names_the_source_and_says_what_the_compiler_says(compiler, runs):
    sources = [
        unit("fine", 1),
        ("broken.cpp", "int f() {\n    return undefined_name;\n}\n"),
        ("worse.cpp", "also wrong"),
    ]
    for count in (1, 2):  # a failure is not remembered
        with pytest.raises(CompileFailed) as failure:
            build(sources)
        error = failure.value
        assert error.source == "broken.cpp"
        assert str(error).splitlines()[0] == "broken.cpp does not compile:"
        assert "broken.cpp:2:12: error:" in str(error) and "undefined_name" in str(error)
        assert f"all messages: {error.log}" in str(error) and error.command in str(error)
        assert error.output in error.log.read_text()
        assert sum("broken.cpp" in command for command in runs) == count


def test_only_the_first_errors_are_shown(compiler):
    text = "".join(f"int f{i}() {{ return missing_{i}; }}\n" for i in range(8))
    with pytest.raises(CompileFailed) as failure:
        build([("many.cpp", text)])
    assert all(f"missing_{i}" in str(failure.value) for i in range(3))
    assert "missing_3" not in str(failure.value) and "... and 5 more" in str(failure.value)
    assert "missing_7" in failure.value.log.read_text()


def test_the_error_of_the_linker(compiler):
    with pytest.raises(CompileFailed) as failure:
        build([unit("one", 1)], link=["-lno_such_library_anywhere"])
    assert "no_such_library_anywhere" in str(failure.value)
    with pytest.raises(CompileFailed) as failure:
        build([("a.cpp", "int twice() { return 1; }"), ("b.cpp", "int twice() { return 1; }")])
    assert failure.value.source is None
    assert str(failure.value).splitlines()[0] == "the objects do not link to a library:"
    assert "twice" in str(failure.value)


def test_loading(compiler, tmp_path):
    with pytest.raises(LoadFailed, match=r"none\.so can't be loaded: .*\n.*Build it again"):
        load(tmp_path / "none.so")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere the linker refuses undefined symbols")
def test_loading_a_library_that_lacks_a_symbol(compiler):
    built = build([unit("f", "g()", "int g();")])
    with pytest.raises(LoadFailed, match="undefined symbol.*\n.*none of them defines"):
        load(built)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sanitizers are preloaded by LD_PRELOAD on Linux only")
@pytest.mark.parametrize("sanitize", ["address", "thread"])
def test_a_sanitizer_is_part_of_the_key_and_is_not_loaded_late(compiler, sanitize):
    plain = build([unit("one", 1)])
    try:
        built = build([unit("one", 1)], sanitize=sanitize)
    except CompileFailed as error:
        pytest.skip(f"this compiler has no such sanitizer: {error}")
    assert built.path != plain.path and f"-fsanitize={sanitize}" in built.command
    with pytest.raises(LoadFailed, match=f"sanitize='{sanitize}' needs a process .*LD_PRELOAD="):
        load(built)


# --- several processes ------------------------------------------------------------------------------------------------

_BUILD = """\
import sys
from pypto.runtime.build import build
print(build([(sys.argv[1] + ".cpp", sys.argv[2])]).cached, flush=True)
"""


def start_build(name, text):
    """Another process that builds a source and prints whether it was cached."""
    return subprocess.Popen([sys.executable, "-c", _BUILD, name, text], stdout=subprocess.PIPE, text=True)


def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


@pytest.fixture
def slow(compiler, tmp_path, monkeypatch):
    """A compiler that waits, once it has begun a library, until the file ``gate`` is gone; ``begun`` tells of it."""
    gate, begun = tmp_path / "gate", tmp_path / "begun"
    script = f"""\
        case "$*" in *slow.cpp*)
            echo x >> {shlex.quote(str(begun))}
            while [ -e {shlex.quote(str(gate))} ]; do sleep 0.02; done ;;
        esac
        exec {shlex.join(compiler.command)} "$@"
    """
    monkeypatch.setenv("CXX", str(wrapper(tmp_path / "slow-c++", script)))
    find_compiler()
    gate.touch()
    yield gate, begun
    gate.unlink(missing_ok=True)


@POSIX
def test_of_several_processes_one_builds(slow):
    gate, begun = slow
    name, text = unit("slow", 9)
    processes = [start_build("slow", text) for _ in range(3)]
    wait_for(begun)
    time.sleep(0.2)  # lets the others come to the lock; the outcome is the same if they are late
    gate.unlink()
    printed = sorted(process.communicate(timeout=60)[0].strip() for process in processes)
    assert printed == ["False", "True", "True"]
    assert begun.read_text().count("x") == 1
    assert load(build([(name, text)])).slow() == 9


@POSIX
def test_a_builder_that_was_killed_blocks_nobody(slow):
    gate, begun = slow
    name, text = unit("slow", 9)
    process = start_build("slow", text)
    wait_for(begun)
    process.send_signal(signal.SIGKILL)
    process.wait()
    gate.unlink()
    built = build([(name, text)])
    assert not built.cached and load(built).slow() == 9


def test_a_truncated_library_is_built_again(compiler):
    built = build([unit("one", 1)])
    os.truncate(built.path, built.path.stat().st_size // 2)
    again = build([unit("one", 1)])
    assert not again.cached and again.path == built.path
    assert load(again).one() == 1


@POSIX
@pytest.mark.parametrize("content", ["", "{", '{"library": 3}'])
def test_a_manifest_that_makes_no_sense_is_no_entry(instant, content):
    built = build([unit("one", 1)])
    (built.path.parent / MANIFEST).write_text(content)
    assert not build([unit("one", 1)]).cached
    assert build([unit("one", 1)]).cached


# --- the cache folder -------------------------------------------------------------------------------------------------


def age(built, seconds):
    """Make an entry look as if it was used that long ago."""
    then = time.time() - seconds
    os.utime(built.path.parent / MANIFEST, (then, then))


@POSIX
def test_over_the_limit_what_was_used_longest_ago_is_removed(instant, monkeypatch):
    old, newer, newest = (build([unit("f", i)]) for i in range(3))
    age(old, 9000), age(newer, 6000), age(newest, 3000)
    assert build([unit("f", 0)]).cached  # which is a use
    size = build_cache.Entry(cache_folder(), newest.path.parent.name).measure()[0]
    monkeypatch.setenv("PYPTO_CACHE_LIMIT", str(int(3.5 * size)))
    built = build([unit("f", 9)])
    assert not newer.path.parent.exists()
    assert all(other.path.exists() for other in (old, newest, built))
    assert not build([unit("f", 1)]).cached


@POSIX
def test_entries_in_use_are_not_removed(instant, monkeypatch):
    recent, locked, old = (build([unit("f", i)]) for i in range(3))
    age(locked, 9000), age(old, 6000)
    monkeypatch.setenv("PYPTO_CACHE_LIMIT", "1K")
    with build_cache.locked(build_cache.Entry(cache_folder(), locked.path.parent.name).lock):
        built = build([unit("f", 3)])
    assert recent.path.exists() and locked.path.exists() and built.path.exists()
    assert not old.path.exists()


@POSIX
def test_entries_are_looked_at_only_when_the_limit_may_be_exceeded(instant, monkeypatch):
    measured, measure = [], build_cache.Entry.measure
    monkeypatch.setattr(build_cache.Entry, "measure", lambda self: measured.append(self.key) or measure(self))
    for i in range(3):
        build([unit("f", i)])
        measured.clear() if i == 0 else None  # the first build of a folder looks at what is there
    assert len(measured) == 2


@POSIX
def test_other_things_in_the_folder_are_left_alone(instant, cache, monkeypatch):
    (cache / "jit").mkdir(parents=True)
    (cache / "jit" / "large").write_bytes(bytes(100_000))
    os.utime(cache / "jit", (1, 1))
    monkeypatch.setenv("PYPTO_CACHE_LIMIT", "0")
    build([unit("one", 1)])
    assert (cache / "jit" / "large").exists()


def test_a_lock_that_was_removed_while_waiting_is_taken_anew(tmp_path):
    path = tmp_path / "a.lock"
    order = []

    def second():
        with build_cache.locked(path):
            order.append("second")
            with build_cache.locked(path, wait=False) as held:  # it holds the lock that others will find
                order.append(held)

    with build_cache.locked(path):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.05)
        order.append("first")
        if sys.platform != "win32":
            path.unlink()
    thread.join(10)
    assert order == ["first", "second", False]


@pytest.mark.parametrize(
    "text, size", [("", 1 << 30), ("1000", 1000), ("2k", 2048), ("1.5 MiB", 3 << 19), ("2GB", 2 << 30), ("0", 0)]
)
def test_the_limit(monkeypatch, text, size):
    monkeypatch.setenv("PYPTO_CACHE_LIMIT", text)
    assert cache_limit() == size


@pytest.mark.parametrize("text", ["much", "-1", "5X"])
def test_a_limit_that_is_no_size(compiler, runs, monkeypatch, text):
    monkeypatch.setenv("PYPTO_CACHE_LIMIT", text)
    with pytest.raises(ValueError, match=f"PYPTO_CACHE_LIMIT='{text}' is not a size"):
        build([unit("one", 1)])
    assert not runs


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("PYPTO_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "pypto"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    system = {"darwin": "Library/Caches/pypto", "win32": "local/pypto"}.get(sys.platform, ".cache/pypto")
    assert cache_folder() == tmp_path / system
    monkeypatch.setenv("PYPTO_CACHE_DIR", "~/mine")
    assert cache_folder() == tmp_path / "mine"


def test_a_folder_that_cannot_be_written(compiler, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("PYPTO_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match=r"file.cache can't be used .*Set PYPTO_CACHE_DIR") as warned:
        built = build([unit("one", 1)])
    assert len(warned) == 1 and built.path.is_relative_to(tmp_path / "tmp")
    assert build([unit("one", 1)]).cached  # without another warning


@pytest.mark.skipif(sys.platform == "win32", reason="temporary folders are private on Windows")
def test_a_temporary_folder_that_others_can_write_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PYPTO_CACHE_DIR", os.devnull)
    expected = tmp_path / f"pypto-{os.getuid()}"
    expected.mkdir()
    expected.chmod(0o777)
    with pytest.warns(RuntimeWarning):
        folder = cache_folder()
    assert folder != expected and folder.stat().st_mode & 0o077 == 0


# --- finding a compiler -----------------------------------------------------------------------------------------------


@pytest.fixture
def only(found, tmp_path, monkeypatch):
    """A function that makes a PATH of one folder with wrappers of the compiler under other names."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(folder))

    def install(name, script=""):
        # What the compiler itself starts, its linker say, is not in that folder.
        return wrapper(folder / name, script or f'PATH={os.defpath}\nexec {shlex.join(found.command)} "$@"')

    return install


@POSIX
def test_cxx_may_hold_arguments(compiler, monkeypatch):
    monkeypatch.setenv("CXX", f"{shlex.join(compiler.command)} -DFROM_CXX=11")
    built = build([unit("value", "FROM_CXX")])
    assert load(built).value() == 11
    assert find_compiler().command == (*compiler.command, "-DFROM_CXX=11")


def test_cxx_that_does_not_exist(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(CompilerNotFound, match="CXX='no-such-compiler -O2': no 'no-such-compiler' on PATH\n.*unset it"):
        build([unit("one", 1)])
    monkeypatch.setenv("CXX", "/no/such/compiler")
    with pytest.raises(CompilerNotFound, match="CXX='/no/such/compiler': .*is not a program that can be run"):
        find_compiler()
    monkeypatch.setenv("CXX", "g++ 'open")
    with pytest.raises(CompilerNotFound, match="CXX=.* can't be read: No closing quotation"):
        find_compiler()


@POSIX
def test_cxx_that_does_not_compile(tmp_path, monkeypatch):
    monkeypatch.setenv(
        "CXX", str(wrapper(tmp_path / "cxx", "[ $1 = --version ] && exit 0; echo 'x: error: broken'; exit 1"))
    )
    with pytest.raises(CompilerNotFound, match=r"CXX.*does not compile a C\+\+17 shared library: x: error: broken"):
        find_compiler()


def test_no_compiler(only, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CompilerNotFound) as failure:
        find_compiler()
    text = str(failure.value)
    for tried in ("c++: no 'c++' on PATH", "g++: no", "clang++: no", "ziglang: the Python package is not installed"):
        assert tried in text
    assert "pip install ziglang" in text and "install" in text and "CXX" in text


@POSIX
def test_a_compiler_that_was_installed_meanwhile_is_found(only, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CompilerNotFound):
        find_compiler()
    only("c++", "exit 1")  # there, but of no use
    path = only("clang++")
    assert find_compiler().path == str(path)
    assert load(build([unit("one", 1)])).one() == 1


@POSIX
def test_what_was_found_is_kept_for_the_next_process(only, monkeypatch):
    path = only("g++")
    found = find_compiler()
    runs, run = [], compilers.run_compiler
    monkeypatch.setattr(compilers, "run_compiler", lambda command, *rest: runs.append(command) or run(command, *rest))
    monkeypatch.setattr(compilers, "_known", {})
    assert find_compiler() == found and not runs
    os.utime(path, (1, 1))  # another program under the same name
    monkeypatch.setattr(compilers, "_known", {})
    assert find_compiler().identity != found.identity and runs


@POSIX
def test_native_flags_that_a_compiler_refuses_are_not_used(only, found):
    refuse = 'case "$*" in *-march=native*) echo "error: -march=native"; exit 1;; esac'
    plain = f'{refuse}\nPATH={os.defpath}\nexec {shlex.join(found.command)} "$@"'
    only("c++", plain)
    assert "-march=native" not in find_compiler().native
    assert load(build([unit("one", 1)])).one() == 1


@POSIX
def test_the_ziglang_package(only, found, tmp_path, monkeypatch, caplog):
    package = tmp_path / "site" / "ziglang"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    wrapper(
        package / "zig", f'[ "$1" = c++ ] || exit 2; shift\nPATH={os.defpath}\nexec {shlex.join(found.command)} "$@"'
    )
    monkeypatch.syspath_prepend(str(package.parent))
    zig = find_compiler()
    assert zig.kind == "zig" and zig.command == (str(package / "zig"), "c++")
    assert "first used" in caplog.text
    assert load(build([unit("one", 1), unit("two", 2)])).two() == 2


@POSIX
def test_a_compiler_that_disappears(only, monkeypatch):
    path = only("c++")
    build([unit("one", 1)])
    path.unlink()
    with pytest.raises(CompilerNotFound, match="can't be started any more: No such file.*Try again"):
        build([unit("one", 2)])
    path = only("g++")
    assert not build([unit("one", 2)]).cached


def test_kinds(monkeypatch):
    texts = {
        "gcc": "g++ (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n",
        "clang": "Debian clang version 15.0.6\nTarget: x86_64-pc-linux-gnu\n",
        "apple clang": "Apple clang version 15.0.0 (clang-1500.3.9.4)\n",
        "other": "a compiler\n",
    }
    for kind, text in texts.items():
        monkeypatch.setattr(compilers, "run_compiler", lambda *_, text=text: (0, text))
        assert compilers._version(["c++"]) == (kind, text.splitlines()[0])
