"""Verbs of site files: apply them, see what that would change, convert and check them."""
