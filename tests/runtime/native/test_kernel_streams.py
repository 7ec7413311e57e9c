"""Writing around the caches: every element arrives, nothing beside it changes, and parts end at lines of memory."""

import platform

import pytest

from pypto.runtime.build import build, load
from pypto.runtime.native_library import SOURCES

X86 = platform.machine().lower() in ("x86_64", "amd64")
TEXT = """
#include "kernel/support.h"

template <typename T>
int64_t wrong() {
    static T from[700], to[800];
    int64_t bad = 0;
    for (int64_t offset = 0; offset < 70; ++offset) {
        for (int64_t count = 0; count < 600; count += 13) {
            for (T& each : to) each = T(9);
            for (int64_t i = 0; i < count; ++i) from[i] = T(i % 100 + 10);
            pto::stream(to + offset, from, count);
            pto::end_streams();
            for (int64_t i = 0; i < 800; ++i) {
                const bool inside = i >= offset && i < offset + count;
                bad += to[i] != (inside ? T((i - offset) % 100 + 10) : T(9));
            }
        }
        const int64_t end = pto::streamed_part(to + offset, 5, 512);
        bad += end < 517 || end > 517 + 64 || reinterpret_cast<uintptr_t>(to + offset + end) % 64 != 0;
    }
    return bad;
}

PTO_EXPORT int64_t count_wrong() { return wrong<float>() + wrong<int8_t>() + wrong<int16_t>() + wrong<int64_t>(); }
"""


@pytest.mark.parametrize("flags", ["", *(["-mno-avx512f", "-march=x86-64"] if X86 else [])])
def test_streams(flags):
    """By lines, by halves of lines, and without instructions for it."""
    library = load(
        build([("streams.cpp", TEXT)], include_dirs=[SOURCES], flags=["-O3", *flags.split()], name="streams")
    )
    assert library.count_wrong() == 0
