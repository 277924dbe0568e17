"""The light on the front of a machine: an extension of what a node is, and a module for it."""
