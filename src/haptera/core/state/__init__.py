"""Desired and known state of each entity, and the state of one turn."""
