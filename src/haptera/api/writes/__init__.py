"""How requests become changes: merge patches, what a token may reach, and plans by digest."""
