"""The parts of AutoDeriveTaskDependencies: where arguments lie, what task ids stand for, the walk that finds edges."""
