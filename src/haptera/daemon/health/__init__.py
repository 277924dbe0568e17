"""A parent's care for nodes that rules speak of: `health.py` hears, has it decided, and writes."""
