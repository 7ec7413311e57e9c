"""Parts of InlineFunctions."""
