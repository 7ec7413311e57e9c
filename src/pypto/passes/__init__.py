"""Passes and what runs them."""
