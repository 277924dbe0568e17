"""What a forked process may reach and which of root's powers it keeps, before its code runs."""
