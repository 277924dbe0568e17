"""A problem in, a plan with its reasons out; pure, usable alone."""
