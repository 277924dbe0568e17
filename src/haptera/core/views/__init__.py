"""Answers to people and programs."""
