"""Why this plan and no other; graphs of a class; the JSON of problems and answers."""
