"""Jobs: whether any runs on this node, and a gate that lets none begin while it is closed."""
