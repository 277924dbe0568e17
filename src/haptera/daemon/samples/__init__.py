"""Numbers that machines report, beside the engine: who measures, who is told, what is kept."""
