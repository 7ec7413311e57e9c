"""Questions about programs that passes, verifiers, code generators and the interpreter ask: each has one answer."""
