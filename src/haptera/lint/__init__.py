"""What declared parts can never do, with counter-examples."""
