"""Measurements on disk: bounded, in files of their own, and nothing depends on them."""
