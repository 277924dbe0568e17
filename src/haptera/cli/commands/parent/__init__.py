"""Verbs that run a parent or keep what is its own: its state, copies, secrets and tokens."""
