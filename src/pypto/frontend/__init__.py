"""From Python source to IR: one parser for decorated functions, programs, text and jit specialisations."""
