"""Code generators: from the final IR to text. Also known as ``pypto.pypto_core.codegen``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._exports import lazy_exports, spread

if TYPE_CHECKING:
    from .orchestration import OrchestrationResult as OrchestrationResult
    from .orchestration import generate_orchestration as generate_orchestration
    from .orchestration import infer_function_core_type as infer_function_core_type

_FROM: dict[str, str] = {
    "pypto.codegen.orchestration": "OrchestrationResult generate_orchestration infer_function_core_type",
}

__getattr__, __dir__ = lazy_exports(__name__, spread(_FROM), ())
