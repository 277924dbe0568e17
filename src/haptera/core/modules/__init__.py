"""Declarations of modules, their processes, and the calls that are open."""
