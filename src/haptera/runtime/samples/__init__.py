"""What machines measured, on disk: bounded, in files of its own, and nothing depends on it."""
