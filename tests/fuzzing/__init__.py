"""Coverage-guided fuzzing of every parser of what others send or write, by atheris (libFuzzer)."""
