"""Making it happen: all input and output of the daemons."""
