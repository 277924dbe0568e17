"""Texts of site files as trees whose every piece knows its place."""
