"""Decisions on what should happen: pure; events and the time in, effects out."""
