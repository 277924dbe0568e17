"""The effects of unwritten changes."""
