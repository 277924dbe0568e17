"""A parent's care for nodes that rules speak of; `health.py` reads, decides and writes."""
