"""Modules that a site file declares: any system with an API or with commands, without Python."""
