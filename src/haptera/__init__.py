"""haptera: a distributed, declarative state engine for clusters."""

__version__ = "0.1.0"
