"""Kinds that a site file declares itself."""
