"""Verbs of the queue: jobs, and the nodes that take them."""
