"""The kinds that are rules: entities that say how others may be treated, told on every side."""
