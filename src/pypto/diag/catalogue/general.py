"""PT01xx: what an error is called that has no closer kind, one code for each exception class."""

from __future__ import annotations

from pypto.diag.catalogue.model import CodeInfo

ENTRIES = (
    CodeInfo(
        code="PT0100",
        title="error in DSL source",
        exception="ParserError",
        explanation="The front end could not turn the program into IR.",
        fix="Follow the message and its hint; the carets stand below the text that is meant.",
    ),
    CodeInfo(
        code="PT0101",
        title="form not allowed",
        exception="ParserSyntaxError",
        explanation="The text is valid Python, but the DSL does not allow the construct in this form or at this place.",
        fix="Write the construct in the form that the hint shows.",
    ),
    CodeInfo(
        code="PT0102",
        title="wrong type",
        exception="ParserTypeError",
        explanation="An annotation, an argument or a value does not have the type that is needed here.",
        fix="Compare what the message says is needed with what was given.",
    ),
    CodeInfo(
        code="PT0103",
        title="unknown name",
        exception="UndefinedVariableError",
        explanation="The name is neither a variable of this function nor a value around its definition.",
        fix="Check the spelling, and assign the name before the line that uses it.",
        phrases=("Undefined variable",),
    ),
    CodeInfo(
        code="PT0104",
        title="second definition under strict_ssa",
        exception="SSAViolationError",
        explanation="With strict_ssa=True each name is defined once. This one already has a definition.",
        fix="Use a new name, carry the value through a loop with init_values and pl.yield_, or leave out strict_ssa.",
        phrases=("is already defined",),
    ),
    CodeInfo(
        code="PT0105",
        title="Python that the DSL does not have",
        exception="UnsupportedFeatureError",
        explanation="The body is read as source and compiled; only a part of Python has a meaning there.",
        fix="Rewrite the line with DSL constructs, or compute the value outside of the function.",
    ),
    CodeInfo(
        code="PT0106",
        title="invalid operation",
        exception="InvalidOperationError",
        explanation="The operator does not exist or rejects its arguments.",
        fix="Check the operator's name, operands and keywords in the operator reference.",
    ),
    CodeInfo(
        code="PT0107",
        title="name of another scope",
        exception="ScopeIsolationError",
        explanation="Reserved.",
        fix="Return the value from the scope that defines it.",
    ),
)
