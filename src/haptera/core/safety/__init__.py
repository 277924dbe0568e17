"""Conditions and claims of disruptive steps."""
