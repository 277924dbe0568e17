"""Bundled modules: users of the SDK and the kinds, nothing else."""
