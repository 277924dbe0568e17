"""Limits of a forked process: its reach, and its part of root's powers, before its code runs."""
