"""What neighbours tell each other, and whose word counts."""
