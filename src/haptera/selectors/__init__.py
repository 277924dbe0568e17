"""Node-sets and selectors: one small language for which entities are meant."""
