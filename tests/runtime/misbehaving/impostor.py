"""A module that declares the parts of another."""

from haptera.sdk import Module, Target


def itself(target: Target) -> Target:
    return target


module = Module("somebody", connect=itself)
