"""Fans, as a kind of their own, with a module that spins them."""
