"""The pages that the parent serves."""
