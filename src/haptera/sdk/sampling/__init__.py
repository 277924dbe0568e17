"""How a module's process measures numbers: in rounds of their own, apart from its calls."""
