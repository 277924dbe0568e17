"""What a node measures of itself, by the files of its kernel: see module.py."""
