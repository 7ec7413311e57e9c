"""PT09xx: errors of the compiler after the front end."""

from __future__ import annotations

from pypto.diag.catalogue.model import CodeInfo

ENTRIES = (
    CodeInfo(
        code="PT0901",
        title="verification failed",
        exception="Error",
        explanation="The program does not have a property that it needs at this stage, such as SSA form.",
        fix="Read the property's name in the message. If the program came straight from DSL source, report a bug.",
    ),
    CodeInfo(
        code="PT0902",
        title="some kernels could not be generated",
        exception="PartialCodegenError",
        explanation="Code generation failed for the functions in the table; the others were generated.",
        fix="Follow the message of each function; the full texts are in report/codegen_errors.txt.",
    ),
    CodeInfo(
        code="PT0999",
        title="compiler bug",
        exception="InternalError",
        explanation="An invariant of PyPTO itself is broken. The program may well be correct.",
        fix="Report the message, the traceback and the program.",
    ),
)
