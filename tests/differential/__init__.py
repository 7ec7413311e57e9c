"""Programs keep their meaning through every pass: shared, shown and generated programs, run after each pass."""
