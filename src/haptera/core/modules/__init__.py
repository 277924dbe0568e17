"""What modules declare, which processes run, which calls are open."""
