"""The verbs, each in the file of its name, in rooms by what they are about."""
