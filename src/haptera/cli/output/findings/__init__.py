"""Findings of lint, as people, programs and code scanning read them."""
