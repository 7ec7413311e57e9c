"""Which tasks an argument waits for, in AUTO scopes (specification of the task runtime, section 4)."""

import numpy as np
import pytest
from native_kit import Suite, edges, zeros

suite = Suite("ordering")

# Each row of the specification's table: task 0 allocates the buffer, task 1 writes it, task 2 has the argument in
# question, task 3 reads the buffer. ("allocation": with the owner; "overlap": with a writer)
_SETTING = "const auto made = task(matrix(4, 4)); const ChipTensor& t = made.get_ref(0); task(out(t));"
_USUAL = [("allocation", 0, 1), ("allocation", 0, 2), ("allocation", 0, 3)]
TAGS = {
    "input": ("task(in(t)); task(in(t));", [("overlap", 1, 2), ("overlap", 1, 3)]),
    "inout": ("task(inout(t)); task(in(t));", [("overlap", 1, 2), ("overlap", 2, 3)]),  # 1 is replaced
    "output_existing": ("task(out(t)); task(in(t));", [("overlap", 1, 3), ("overlap", 2, 3)]),
    "no_dep": ("task(no_dep(t)); task(in(t));", [("overlap", 1, 3)]),
}
for name, (body, _) in TAGS.items():
    suite.entry(f"tag_{name}", f"{_SETTING} {body}", tensors="")


@pytest.mark.parametrize("tag", TAGS)
def test_each_tag(tag):
    expected = sorted(_USUAL + TAGS[tag][1], key=lambda edge: edge[:0:-1])
    assert edges(suite.run(f"tag_{tag}", record=True)) == expected


# Each case: orchestration text (x, y: matrices of 16 x 16 floats), and the edges that it makes.
CASES = {
    # A created tensor is a new buffer: the allocator is its only producer, and it is no writer.
    "created": ("const auto a = task(matrix(4, 4)); task(in(a.get_ref(0)));", [("allocation", 0, 1)]),
    "created beside arguments": (
        "task(out(x)); const auto a = task(in(x), matrix(4, 4), matrix(4, 4)); task(in(a.get_ref(0)), in(a.get_ref(1)));",
        [("overlap", 0, 1), ("allocation", 1, 2)],
    ),
    "arguments of the program have no allocator": ("task(in(x)); task(in(x));", []),
    "read after write": ("task(out(x)); task(in(x));", [("overlap", 0, 1)]),
    "readers do not wait for each other": (
        "task(out(x)); task(in(x)); task(in(x));",
        [("overlap", 0, 1), ("overlap", 0, 2)],
    ),
    "write after read is not ordered": ("task(in(x)); task(inout(x)); task(in(x)); task(out(x));", [("overlap", 1, 2)]),
    "write after write through inout": ("task(out(x)); task(inout(x));", [("overlap", 0, 1)]),
    "write after write through output is not ordered": ("task(out(x)); task(out(x));", []),
    "a chain of inout": ("task(inout(x)); task(inout(x)); task(inout(x));", [("overlap", 0, 1), ("overlap", 1, 2)]),
    "outputs gather": (
        "task(out(x)); task(out(x)); task(out(x)); task(in(x));",
        [("overlap", 0, 3), ("overlap", 1, 3), ("overlap", 2, 3)],
    ),
    "inout replaces all it covers": (
        "task(out(rows(x, 0, 4))); task(out(rows(x, 4, 4))); task(inout(rows(x, 0, 8))); task(in(x));",
        [("overlap", 0, 2), ("overlap", 1, 2), ("overlap", 2, 3)],
    ),
    "inout does not replace what it covers in part": (
        "task(out(rows(x, 0, 8))); task(inout(rows(x, 4, 8))); task(in(x)); task(in(rows(x, 4, 4)));",
        [("overlap", 0, 1), ("overlap", 0, 2), ("overlap", 1, 2), ("overlap", 0, 3), ("overlap", 1, 3)],
    ),
    "inout replaces tiles in a tile": (
        "task(out(box(x, 0, 4, 0, 4))); task(out(box(x, 0, 4, 4, 4))); task(inout(box(x, 0, 4, 0, 8))); task(in(x));",
        [("overlap", 0, 2), ("overlap", 1, 2), ("overlap", 2, 3)],
    ),
    "replaced at another place too": (  # two writers of one task are two registrations
        "task(out(rows(x, 0, 2)), out(rows(y, 0, 2))); task(inout(x)); task(in(y));",
        [("overlap", 0, 1), ("overlap", 0, 2)],
    ),
    "a task does not wait for itself": ("task(inout(x), inout(x), in(x), out(x));", []),
    "one edge a producer": (
        "const auto a = task(out(x), out(y)); task(in(x), in(y), in(rows(x, 0, 1)), after{a, a});",
        [("overlap", 0, 1)],
    ),
    "one edge a producer, the first reason": (
        "const auto a = task(matrix(4, 4), out(x)); task(in(x), in(a.get_ref(0)), after{a});",
        [("overlap", 0, 1)],
    ),
    "no_dep neither waits nor is waited for": ("task(out(x)); task(no_dep(x)); task(no_dep(x));", []),
    "explicit": ("const auto a = task(in(x)); task(out(x), after{a});", [("explicit", 0, 1)]),
    "explicit on two": (
        "const auto a = task(in(x)), b = task(in(x)); task(out(x), after{a, b});",
        [("explicit", 0, 2), ("explicit", 1, 2)],
    ),
    "manual_dep keeps the allocation edge": (
        """const auto a = task(matrix(4, 4, DataType::FLOAT32, true));
           const ChipTensor& t = a.get_ref(0);
           task(out(t)); task(in(t)); task(inout(t)); task(no_dep(t)); task(in(box(t, 0, 1, 0, 1)));""",
        [("allocation", 0, n) for n in range(1, 6)],
    ),
    "a view that is manual_dep does not look": (
        "task(out(x)); task(in(box(x, 0, 4, 0, 4, true))); task(in(x));",
        [("overlap", 0, 2)],
    ),
    "different buffers": ("task(out(x)); task(in(y)); task(inout(y)); task(in(x));", [("overlap", 0, 3)]),
    "buffers of one task": (
        "const auto a = task(row_of(3), row_of(3)); task(out(a.get_ref(0))); task(in(a.get_ref(1)));",
        [("allocation", 0, 1), ("allocation", 0, 2)],
    ),
    "disjoint bands": (
        "for (uint32_t i = 0; i < 16; ++i) task(out(rows(x, i, 1))); for (uint32_t i = 0; i < 4; ++i) task(in(rows(x, 4 * i, 4)));",
        [("overlap", n, 16 + n // 4) for n in range(16)],
    ),
    "disjoint columns": (
        "for (uint32_t i = 0; i < 16; ++i) task(out(columns(x, i, 1))); for (uint32_t i = 0; i < 4; ++i) task(in(columns(x, 4 * i, 4)));",
        [("overlap", n, 16 + n // 4) for n in range(16)],
    ),
    "disjoint tiles": (
        """for (uint32_t i = 0; i < 4; ++i) for (uint32_t j = 0; j < 4; ++j) task(out(box(x, 4 * i, 4, 4 * j, 4)));
           task(in(box(x, 0, 8, 0, 8))); task(in(box(x, 3, 2, 3, 2))); task(in(box(x, 4, 4, 8, 4)));""",
        [("overlap", p, c) for c in (16, 17) for p in (0, 1, 4, 5)] + [("overlap", 6, 18)],
    ),
    "partly overlapping boxes": (
        """task(out(box(x, 0, 8, 0, 8))); task(in(box(x, 7, 8, 7, 8))); task(in(box(x, 8, 8, 0, 8)));
           task(in(box(x, 0, 8, 8, 8))); task(in(box(x, 7, 2, 0, 1)));""",
        [("overlap", 0, 1), ("overlap", 0, 4)],
    ),
    "a row against columns": (  # contiguous bytes against boxes
        "task(out(columns(x, 0, 4))); task(out(columns(x, 4, 4))); task(in(box(x, 5, 1, 3, 1))); task(in(box(x, 5, 1, 3, 2)));",
        [("overlap", 0, 2), ("overlap", 0, 3), ("overlap", 1, 3)],
    ),
    "even and odd columns": (
        """task(out(x.slice(1, 0, 16, 2))); task(out(x.slice(1, 1, 16, 2)));
           task(in(x.slice(1, 0, 16, 2))); task(in(x.slice(1, 1, 16, 2))); task(in(x.slice(1, 3, 16, 4)));
           task(in(x.slice(0, 0, 16, 2)));""",
        [("overlap", 0, 2), ("overlap", 1, 3), ("overlap", 1, 4), ("overlap", 0, 5), ("overlap", 1, 5)],
    ),
    "even and odd rows": (
        "task(out(x.slice(0, 0, 16, 2))); task(in(x.slice(0, 1, 16, 2))); task(in(x.slice(0, 2, 3, 2)));",
        [("overlap", 0, 2)],
    ),
    "transposed": (
        """const ChipTensor t = x.transpose(0, 1);
           task(out(rows(x, 0, 4))); task(in(columns(t, 0, 4))); task(in(columns(t, 4, 12))); task(in(rows(t, 0, 1)));
           task(out(rows(t, 0, 4))); task(in(columns(x, 4, 4))); task(in(columns(x, 3, 1)));""",
        [("overlap", 0, c) for c in (1, 3, 5, 6)] + [("overlap", 4, 6)],
    ),
    "reshaped": (
        """const uint32_t flat[] = {256}, wide[] = {4, 64};
           const ChipTensor v = x.reshape(flat, 1), w = x.reshape(wide, 2);
           task(out(rows(x, 4, 4))); task(in(part(v, 0, 64))); task(in(part(v, 63, 2))); task(in(rows(w, 1, 1)));
           task(in(rows(w, 2, 2))); task(in(columns(w, 0, 1)));""",
        [("overlap", 0, c) for c in (2, 3, 5)],
    ),
    "empty views": ("task(out(rows(x, 4, 0))); task(in(x)); task(out(x)); task(in(rows(x, 4, 0))); task(inout(columns(x, 3, 0)));", []),
}  # fmt: skip
_ENTRIES = {case: "case_" + case.replace(" ", "_").replace(",", "") for case in CASES}
for case, (body, _) in CASES.items():
    suite.entry(_ENTRIES[case], body, tensors="x y")


@pytest.mark.parametrize("case", CASES)
def test_edges(case):
    found = edges(suite.run(_ENTRIES[case], [zeros(16, 16), zeros(16, 16)], record=True))
    assert found == sorted(CASES[case][1], key=lambda edge: edge[:0:-1])


suite.entry("in_bytes", "task(out(x)); task(in(y));", tensors="x y")


@pytest.mark.parametrize(
    ("written", "read", "meet"),
    [
        ("x[0:4]", "x[0:4].view(np.int16)", True),
        ("x[0:4]", "x[4:8].view(np.int8)", False),  # elements 0:4 of 4 bytes against 16:32 of one
        ("x[0:4]", "x.view(np.int8)[15:17]", True),
        ("x[0:4]", "x.view(np.int8)[16:20]", False),
        ("x.view(np.int8)[8:9]", "x[2:3]", True),
        ("x.view(np.int64)[1:2]", "x.view(np.int16)[4:8:2]", True),
        ("x.view(np.int16)[0::2]", "x.view(np.int16)[1::2]", False),  # low halves against high halves
        ("x.view(np.int8)[3::4]", "x.view(np.int16)[0::2]", False),
        ("x.view(np.int8)[3::4]", "x.view(np.int16)[1::2]", True),
    ],
)
def test_views_of_different_element_types_are_compared_in_bytes(written, read, meet):
    x = zeros(16)
    arrays = [eval(text, {"x": x, "np": np}) for text in (written, read)]
    assert np.shares_memory(*arrays) == meet  # what the case says
    assert edges(suite.run("in_bytes", arrays, record=True)) == [("overlap", 0, 1)] * meet


# Values: the order that edges promise is kept, whatever is ready first.
suite.entry(
    "values",
    """
    const auto made = launch(id::fill, matrix(16, 16), 1);
    const ChipTensor& t = made.get_ref(0);
    for (uint32_t i = 0; i < 4; ++i) launch(id::add, inout(box(t, 4 * i, 4, 0, 8)), i);
    launch(id::add, inout(t), 10);
    for (uint32_t i = 0; i < 4; ++i) launch(id::add, inout(columns(t, 4 * i, 4)), 100 * i);
    launch(id::copy, in(t.transpose(0, 1)), inout(x));
    launch(id::add, inout(x.slice(1, 0, 16, 2)), 1000);
    launch(id::copy, in(x.slice(1, 0, 16, 2)), out(y.slice(1, 1, 16, 2)));
    launch(id::copy, in(x.slice(1, 1, 16, 2)), out(y.slice(1, 0, 16, 2)));
    """,
    tensors="x y",
)


@pytest.mark.parametrize("options", [{}, {"workers": 4}, *({"random": True, "seed": n} for n in range(10))], ids=str)
def test_values(options):
    x, y = zeros(16, 16), zeros(16, 16)
    suite.run("values", [x, y], **options)
    t = np.ones((16, 16), np.float32)
    t[:, :8] += np.arange(16)[:, None] // 4
    t += 10 + 100 * (np.arange(16) // 4)
    t = t.T.copy()
    t[:, ::2] += 1000
    np.testing.assert_array_equal(x, t)
    np.testing.assert_array_equal(y[:, 1::2], t[:, ::2])
    np.testing.assert_array_equal(y[:, ::2], t[:, 1::2])


suite.entry("many_producers", "for (int64_t i = 0; i < n; ++i) task(out(x)); task(in(x)); task(inout(x));", scalars="n")


def test_edges_are_counted_whether_recorded_or_not():
    recorded = suite.run("many_producers", [zeros(4)], [50], record=True).counters
    plain = suite.run("many_producers", [zeros(4)], [50]).counters  # one worker: nothing has run before the last submit
    assert list(recorded.edges) == list(plain.edges) == [0, 100, 0, 0, 0, 0]
    assert recorded.tasks == plain.tasks == 52


# Each case: what is submitted when writers wait for readers, too, and the edges.
READERS = {
    "a writer behind a reader": ("task(in(x)); task(inout(x));", [("overwrite", 0, 1)]),
    "an output behind a reader": ("task(in(x)); task(out(x));", [("overwrite", 0, 1)]),
    "all readers": ("task(in(x)); task(in(x)); task(out(x));", [("overwrite", 0, 2), ("overwrite", 1, 2)]),
    "what was written is read": ("task(out(x)); task(in(x)); task(inout(x));", [("overlap", 0, 1), ("overlap", 0, 2), ("overwrite", 1, 2)]),
    "one that reads and writes": ("task(inout(x)); task(out(x));", [("overwrite", 0, 1)]),
    "twice the same is one edge": ("task(inout(x)); task(inout(x));", [("overlap", 0, 1)]),
    "other bytes": ("task(in(rows(x, 0, 4))); task(inout(rows(x, 4, 4))); task(inout(rows(x, 2, 4)));", [("overwrite", 0, 2), ("overlap", 1, 2)]),
    "no_dep reads nothing and writes nothing": ("task(no_dep(x)); task(inout(x)); task(no_dep(x));", []),
    "an untracked tensor": (
        "const ChipTensor free = box(x, 0, 16, 0, 16, true); task(in(free)); task(inout(free));",
        [],
    ),
    "a manual reader": (
        "PTO2_SCOPE(PTO2ScopeMode::MANUAL) { task(in(x)); } task(inout(x));",
        [("overwrite", 0, 1)],
    ),
    "a manual writer": ("task(in(x)); PTO2_SCOPE(PTO2ScopeMode::MANUAL) { task(inout(x)); }", []),
    "a predicate reads": (
        "CoreTaskArgs args; CoreTaskPredicate when; const ChipTensor flags = y; when.operand.tensor = &flags;\n"
        "when.operand.ndims = 2; when.operand.indices[0] = when.operand.indices[1] = 0; when.op = PredicateOp::EQ;\n"
        "when.target = 0; args.set_predicate(when); rt_submit_aiv_task(0, args); task(inout(y));",
        [("overwrite", 0, 1)],
    ),
}  # fmt: skip
for number, (body, _) in enumerate(READERS.values()):
    suite.entry(f"readers_{number}", body, tensors="x y")


@pytest.mark.parametrize("case", READERS)
def test_writers_wait_for_readers_if_asked(case):
    _, expected = READERS[case]
    arguments = [zeros(16, 16), zeros(16, 16, dtype=np.int32)]
    entry = f"readers_{list(READERS).index(case)}"
    assert edges(suite.run(entry, arguments, record=True, order_reads=True)) == sorted(expected, key=lambda e: e[:0:-1])
    assert "overwrite" not in [reason for reason, _, _ in edges(suite.run(entry, arguments, record=True))]


suite.entry("created", """
for (int64_t i = 0; i < n; ++i) {
    PTO2_SCOPE() {
        const auto made = task(in(x), matrix(4, 4));
        task(in(made.get_ref(0)), inout(rows(x, 4 * (i % 4), 4)));
        task(in(rows(x, 0, 8)), inout(made.get_ref(0)));
    }
}
""", scalars="n")  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"workers": 3}, {"random": True}, {"record": True}], ids=str)
def test_readers_are_forgotten_with_their_buffers(options):
    counters = suite.run("created", [zeros(16, 16)], [3000], order_reads=True, **options).counters
    assert counters.tasks == 9000
    if not options:
        assert counters.edges[5] > 3000
