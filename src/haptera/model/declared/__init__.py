"""How kinds and modules are declared, and what may be written of an entity by that."""
