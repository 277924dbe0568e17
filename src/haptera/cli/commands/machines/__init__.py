"""Verbs of machines: their power, which are nodes, and the images that they boot and run."""
