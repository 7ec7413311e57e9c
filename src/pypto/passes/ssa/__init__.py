"""The parts of the conversion to SSA form; see :mod:`pypto.passes.convert_to_ssa`."""
