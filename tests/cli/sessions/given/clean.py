"""A module without parts."""

from haptera.sdk import Module, Target

module = Module("mine", connect=Target)
