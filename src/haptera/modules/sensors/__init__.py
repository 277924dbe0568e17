"""A node's own measurements, from the files of its kernel: see module.py."""
