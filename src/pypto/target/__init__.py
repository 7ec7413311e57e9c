"""Facts about targets: memory sizes, core counts, data paths, and which platforms exist. Data only."""
