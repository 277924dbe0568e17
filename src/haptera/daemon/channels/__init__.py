"""What a parent and its agents ask each other, and the sessions in which they do."""
