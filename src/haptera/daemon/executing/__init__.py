"""Commands that people have run on a node: each has a keeper, and ends with who waits for it."""
