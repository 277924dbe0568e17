"""Programs that a node keeps: services, replicas, jobs; each outlives whoever started it."""
