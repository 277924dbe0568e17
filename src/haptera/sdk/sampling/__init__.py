"""Sampling in a module's process, in rounds of its own, apart from its calls."""
