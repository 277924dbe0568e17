"""Reasons for the absence of a plan."""
