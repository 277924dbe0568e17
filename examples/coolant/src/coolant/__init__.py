"""Coolant loops of racks, as a kind of the whole cluster, with a module that runs their pumps."""
