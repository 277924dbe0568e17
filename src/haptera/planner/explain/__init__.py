"""Explanations of plans, graphs of a class, and the JSON of problems and answers."""
