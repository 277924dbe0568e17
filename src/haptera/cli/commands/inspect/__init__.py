"""Verbs that only look: how entities are, why, what is left to do, and what was written when."""
