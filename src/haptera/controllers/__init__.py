"""Controllers that come with haptera: they read state and write desired state, nothing else."""
