"""Verbs that run on a node: its agent, and commands under its watch."""
