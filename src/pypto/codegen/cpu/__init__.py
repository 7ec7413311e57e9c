"""Kernels as C++ functions for the host's own cores."""
