"""The REST interface under /v1 and its streams."""
