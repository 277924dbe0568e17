"""Messages between neighbours, and whose word counts."""
