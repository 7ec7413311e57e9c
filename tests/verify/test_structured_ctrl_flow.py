"""StructuredCtrlFlow: kernels are left in no other way than at their end."""

from verify_kit import expect, holds, program

from pypto.verify.properties import IRProperty

P = IRProperty.StructuredCtrlFlow
LOOP = "for i in pl.range(4):\n    if n > 1:\n        {}\n    b = n + i\nreturn x"


def test_break_and_continue_in_a_kernel():
    expect(P, program(LOOP.format("break"), kind="InCore"), 0, says="'break'")
    expect(P, program(LOOP.format("continue"), kind="AIV"), 1, says="'continue'")
    both = (
        "for i in pl.range(4):\n    if n > 1:\n        break\n    if n > 2:\n        continue\n    b = n + i\nreturn x"
    )
    expect(P, program(both, kind="AIC"), 0, 1)


def test_in_a_kernel_scope():
    scope = "with pl.at(level=pl.Level.CORE_GROUP):\n    for i in pl.range(4):\n        if n > 1:\n            break\n        b = n + i\nreturn x"
    expect(P, program(scope), 0)


def test_host_code_may():
    holds(P, program(LOOP.format("break")))
    holds(P, program(LOOP.format("continue"), kind="Opaque"))
    holds(P, program("for i in pl.range(4):\n    b = n + i\nreturn x", kind="InCore"))
