"""A parent's daemon: from its state file to its API, and what it is started with."""
