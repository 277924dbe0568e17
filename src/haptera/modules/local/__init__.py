"""Instances of a lab's own cloud: virtual nodes, made and destroyed on demand."""

from haptera.modules.local.module import module

__all__ = ["module"]
