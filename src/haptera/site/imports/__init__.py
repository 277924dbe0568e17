"""Clusters as other tools know them, read as a site, with remarks on what has no place there."""
