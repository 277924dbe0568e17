"""Whether a disruptive step may run now."""
