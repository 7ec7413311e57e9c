"""The parts of the orchestration generator, from the variables that everything stands on to the control flow around."""
