"""Verbs by which a person changes entities directly: values, retries, freezes, the brake."""
