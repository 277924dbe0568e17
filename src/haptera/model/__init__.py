"""What things are: values that every other package shares; imports nothing of ours."""
