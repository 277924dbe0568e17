"""haptera: a distributed, declarative state engine for clusters."""

# A checkout is of no version; `make release` writes that of the tag.
__version__ = "0.dev0"
