"""Many entities at once, in columns of numbers: for parents, and the only place with numpy."""
