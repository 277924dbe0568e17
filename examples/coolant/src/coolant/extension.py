"""What nodes have to do with coolant loops: the one of its rack cools a node."""

from coolant.kind import state
from haptera.kinds import node
from haptera.sdk import Extension, Relation

# Parts of nodes may require it; people read `coolant[node.rack].state`.
cooled = Relation(state, node.rack)

extension = Extension("cooled", related=(cooled,))
