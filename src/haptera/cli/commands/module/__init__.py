"""The verbs below `haptera module`, a file each."""
