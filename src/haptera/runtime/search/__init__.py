"""Searches in worker processes."""
