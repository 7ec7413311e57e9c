"""PipelineLoopValid: a loop is of kind Pipeline exactly when it has ``pipeline_stages``."""

from __future__ import annotations

from ..ir.enums import ForKind
from ..ir.program import Function
from ..ir.stmt import ForStmt
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.PipelineLoopValid)
def check(function: Function, findings: Findings) -> None:
    """Code 0: the kind without the attribute; code 1: the attribute without the kind."""
    for loop, _region in inventory(function).of(ForStmt):
        is_pipeline, has_stages = loop.kind is ForKind.Pipeline, "pipeline_stages" in loop.attrs
        if is_pipeline is has_stages:
            continue
        which = f"the loop over '{loop.loop_var.name_hint}' in function '{function.name}'"
        if is_pipeline:
            text = f"{which} has kind ForKind::Pipeline without attrs['pipeline_stages']"
            findings.error(0, text, loop.span)
        else:
            text = f"{which} has attrs['pipeline_stages'] with kind ForKind::{loop.kind.name} instead of Pipeline"
            findings.error(1, text, loop.span)
