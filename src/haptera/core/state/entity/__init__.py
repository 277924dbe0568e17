"""The parts of an entity's record: one class for each owner, which alone writes it."""
