"""A package, so that what its conftest.py starts ends with the last of its tests."""
