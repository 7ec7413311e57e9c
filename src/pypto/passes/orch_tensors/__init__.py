"""The rewrites of OptimizeOrchTensors, one file each, and what they ask about a function."""
