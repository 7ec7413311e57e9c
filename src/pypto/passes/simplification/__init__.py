"""Parts of Simplify."""
