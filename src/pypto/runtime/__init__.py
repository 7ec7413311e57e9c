"""Running programs: configuration, execution, workers, timing.

Importing this package is cheap: everything is imported on first use. ``PYPTO_RUNTIME_LOG`` takes effect on import.
"""

from __future__ import annotations

from .._exports import lazy_exports, spread
from .log import configure_log, log_level

_FROM = {
    "pypto.runtime.bench": "BenchmarkStats TraceInvocation TraceSpan benchmark",
    "pypto.runtime.checking": "assert_close",
    "pypto.runtime.device_tensor": "DeviceTensor StackedDeviceTensor",
    "pypto.runtime.errors": "ProgramError RaceError",
    "pypto.runtime.run_config": "RunConfig",
    "pypto.runtime.runner": "RunResult compile_program execute_compiled run run_test",
    "pypto.runtime.tensor_spec": "ScalarSpec TensorSpec",
    "pypto.runtime.worker": "ChipWorker RegistrationHandle Worker",
}
_SUBMODULES = (
    "activations arrays artifact bench binding build build_cache checking compilers device_tensor element_types errors"
    " execute files frames graph host_cpu interpreter kernel_scopes launches log mixed races reachability recording"
    " region_set regions report run_config runner scalar_args scalars scope_tasks signature spans task_records"
    " tensor_spec trace worker"
).split()

__getattr__, __dir__ = lazy_exports(__name__, spread(_FROM), _SUBMODULES)

__all__ = [
    "BenchmarkStats",
    "ChipWorker",
    "DeviceTensor",
    "ProgramError",
    "RaceError",
    "RegistrationHandle",
    "RunConfig",
    "RunResult",
    "ScalarSpec",
    "StackedDeviceTensor",
    "TensorSpec",
    "TraceInvocation",
    "TraceSpan",
    "Worker",
    "assert_close",
    "benchmark",
    "compile_program",
    "configure_log",
    "execute_compiled",
    "log_level",
    "run",
    "run_test",
]
