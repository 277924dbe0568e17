"""One interface over many entities, in plain Python."""
