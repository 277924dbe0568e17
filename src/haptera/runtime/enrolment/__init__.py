"""How a booted node becomes a child."""
