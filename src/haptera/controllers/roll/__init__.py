"""Rolls systems over to another image, a few at a time, as far as it proves good."""
