"""Measurements, beside the engine: their sampling, their listeners, and what is kept."""
