"""Tasks are ordered by the parts of their arguments that kernels say they touch."""

import sys

import numpy as np
import pytest
from native_kit import Suite, edges, zeros

from pypto.runtime.host_executor import HostProgram, Kernel, RunOptions

suite = Suite("parts")

SCALAR, EXTENT, BLOCK = 0, 1, 2


def form(constant, *terms):
    """A number, and (factor, kind, word, word) for each term."""
    return [constant, len(terms), *(word for term in terms for word in (*term, 0, 0)[:4])]


def tensor(*boxes):
    """Each box: a pair of forms for each dimension, or None for all of it."""
    words = [len(boxes), len(boxes[0])]
    for box in boxes:
        for dim in box:
            words += [0] if dim is None else [1, *dim[0], *dim[1]]
    return words


def kernel(*tensors):
    """The words of a kernel; None for a tensor of which nothing is known."""
    words = [len(tensors)]
    data = []
    for each in tensors:
        words.append(0 if each is None else 1 + len(tensors) + len(data))
        data += each or []
    return words + data


def at_scalar(factor=1, size=4, bits=-64, number=0):
    return form(0, (factor, SCALAR, number, bits)), form(size)


ROWS = kernel(tensor([at_scalar(), None]))  # `size` rows from the first scalar on
SPMD = """
CoreTaskArgs args;
add_to(args, {how}(x));
args.add_scalar(int64_t{{{at}}});
args.launch_spec.set_block_num({blocks});
rt_submit_aiv_task(0, args, __builtin_LINE());
"""

# Each case: the words of the kernel, what is submitted (x: 16 x 8), the edges.
CASES = {
    "apart": (ROWS, "task(inout(x), 0); task(inout(x), 4); task(inout(x), 12);", []),
    "neighbours that share a row": (ROWS, "task(inout(x), 0); task(inout(x), 3);", [(0, 1)]),
    "the same place": (ROWS, "task(inout(x), 4); task(inout(x), 4); task(inout(x), 4);", [(0, 1), (1, 2)]),
    "a reader of some": (
        ROWS,
        "task(out(x), 0); task(out(x), 4); task(out(x), 8); task(in(x), 2);",
        [(0, 3), (1, 3)],
    ),
    "one that covers replaces what it covers": (
        kernel(tensor([(form(0), form(0, (1, SCALAR, 0, -64))), None])),
        "task(inout(x), 4); task(inout(x), 8); task(inout(x), 2);",
        [(0, 1), (1, 2)],
    ),
    "columns": (kernel(tensor([None, at_scalar()])), "task(inout(x), 0); task(inout(x), 4); task(in(x), 2);", [(0, 2), (1, 2)]),
    "of a view": (ROWS, "task(inout(rows(x, 8, 8)), 0); task(inout(x), 4); task(inout(x), 8);", [(0, 2)]),
    "a factor": (kernel(tensor([at_scalar(factor=4), None])), "task(inout(x), 0); task(inout(x), 1);", []),
    "a negative factor": (
        kernel(tensor([(form(12, (-4, SCALAR, 0, -64)), form(4)), None])),
        "task(inout(x), 0); task(inout(x), 1); task(inout(rows(x, 8, 4)), 2);",
        [],
    ),
    "two boxes are one": (
        kernel(tensor([at_scalar(size=2), None], [(form(8, (1, SCALAR, 0, -64)), form(2)), None])),
        "task(inout(x), 0); task(inout(x), 4); task(inout(x), 14);",
        [(0, 1)],
    ),
    "in front of the tensor": (ROWS, "task(inout(x), -2); task(inout(x), 2); task(inout(x), -4);", []),
    "behind the tensor": (ROWS, "task(inout(x), 14); task(inout(x), 16); task(inout(x), 20);", []),
    "nothing is known of one": (kernel(None), "task(inout(x), 0); task(inout(x), 4);", [(0, 1)]),
    "no words for an argument": (kernel(), "task(inout(x), 0); task(inout(x), 4);", [(0, 1)]),
    "boxes of another rank": (kernel(tensor([at_scalar()])), "task(inout(x), 0); task(inout(x), 4);", [(0, 1)]),
    "a scalar that is not there": (
        kernel(tensor([at_scalar(number=3), None])),
        "task(inout(x), 0); task(inout(x), 4);",
        [(0, 1)],
    ),
    "a number that does not fit": (
        kernel(tensor([(form(0, (2**62, SCALAR, 0, -64)), form(4)), None])),
        "task(inout(x), 0); task(inout(x), 4);",
        [(0, 1)],
    ),
    "an extent": (
        kernel(tensor([(form(-4, (1, EXTENT, 0, 0)), form(4)), None])),
        "task(inout(x), 0); task(inout(rows(x, 0, 12)), 0); task(inout(rows(x, 8, 6)), 0);",
        [(0, 2), (1, 2)],
    ),
    # Upper bits of narrow scalars mean nothing.
    "a signed byte": (
        kernel(tensor([(form(4, (1, SCALAR, 0, -8)), form(4)), None])),
        "task(inout(x), 0x1fc); task(inout(x), 0x100);",  # -4 and 0
        [],
    ),
    "an unsigned byte": (kernel(tensor([at_scalar(bits=8), None])), "task(inout(x), 0x104); task(inout(x), 0x200);", []),
    "an unsigned scalar too large": (
        kernel(tensor([at_scalar(bits=64), None])),
        "task(inout(x), -1); task(inout(x), 4);",
        [(0, 1)],
    ),
    "blocks": (
        kernel(tensor([(form(0, (1, SCALAR, 0, -64), (4, BLOCK)), form(4)), None])),
        SPMD.format(how="inout", at=0, blocks=2) + "{" + SPMD.format(how="inout", at=8, blocks=2) + "} task(inout(x), 6);",
        [(0, 2), (1, 2)],
    ),
}  # fmt: skip
for number, (_, body, _) in enumerate(CASES.values()):
    suite.entry(f"case_{number}", body)


@pytest.mark.parametrize("case", CASES)
def test_edges(case):
    words, _, expected = CASES[case]
    number = list(CASES).index(case)
    found = edges(run(f"case_{number}", [zeros(16, 8)], words))
    assert [(producer, consumer) for _, producer, consumer in found] == expected


def run(entry, tensors, *words, **options):
    """Kernel 0 has the first words, kernel 1 the second ones."""
    names = ["nop", "fill"]
    table = [Kernel(n, getattr(suite.library, n), None, w) for n, w in zip(names, (*words, ()), strict=False)]
    options = {"workers": 1, "record": True, **options}
    program = HostProgram(suite.library, table, entry=f"entry_{entry}", config=None)
    return program.run(tensors, [], RunOptions(**options))


def test_whole_arguments_if_one_wants_it():
    words, _, _ = CASES["apart"]
    assert [e[1:] for e in edges(run("case_0", [zeros(16, 8)], words, by_parts=False))] == [(0, 1), (1, 2)]


def test_what_is_recorded_of_an_argument_is_the_part():
    result = run("case_0", [zeros(16, 8)], CASES["apart"][0])
    accesses = [access for access in result.records[2] if access.tag == 1]
    assert [(a.region.low, a.region.high) for a in accesses] == [(0, 128), (128, 256), (384, 512)]


@pytest.mark.skipif(sys.platform == "win32", reason="isolate=True is not implemented on Windows")
def test_another_process_is_told():
    options = {"isolate": True}
    assert edges(run("case_0", [zeros(16, 8)], CASES["apart"][0], **options)) == []
    assert len(edges(run("case_0", [zeros(16, 8)], (), **options))) == 2


MIXED = """
for (int64_t at : {0, 8}) {
    CoreTaskArgs args;
    args.add_inout(x);
    args.add_scalar(at);
    rt_submit_task(MixedKernels{0, 1, INVALID_KERNEL_ID}, args, __builtin_LINE());
}
"""
suite.entry("mixed", MIXED)


def test_a_mixed_kernel_touches_what_its_parts_touch():
    apart = kernel(tensor([(form(4, (1, SCALAR, 0, -64)), form(4)), None]))
    further = kernel(tensor([(form(0, (1, SCALAR, 0, -64)), form(9)), None]))
    assert edges(run("mixed", [zeros(16, 8)], ROWS, apart)) == []
    assert len(edges(run("mixed", [zeros(16, 8)], ROWS, further))) == 1
    assert len(edges(run("mixed", [zeros(16, 8)], ROWS, ()))) == 1  # of one of them nothing is known


def test_the_bands_of_a_tensor_are_found_one_by_one():
    """A lookup among many disjoint parts costs what it returns."""
    x = np.zeros((4096, 8), np.float32)
    counters = run("bands", [x], ROWS, record=False).counters
    assert sum(counters.edges) == 0
    assert counters.visited < 40 * 1024


suite.entry("bands", "for (int64_t i = 0; i < 1024; ++i) task(inout(x), 4 * i);")
