"""Looks and steps under way, contradictions and oscillation."""
