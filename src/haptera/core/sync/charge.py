"""The nodes that a parent of a tree keeps itself, and the parents above and below each other."""

from collections.abc import Callable, Iterable, Mapping

from haptera.core.state.allowance import READ_AT_ONCE, READING_EACH
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.sync.peers import Peer, Tier
from haptera.kinds.node import parents
from haptera.model.entity import node_id
from haptera.planner.domain.pieces import Pieces, at_once, slices


def parents_of(attributes: Mapping[str, str]) -> tuple[str, ...]:
    """The parents that a node may have, the first one first; none where the root keeps it.

    >>> parents_of({"parents": "m1, m2"})
    ('m1', 'm2')
    """
    listed = attributes.get(parents.name)
    return () if listed is None else tuple(listed.replace(",", " ").split())


def is_above(parent: str, node: str, listed: Callable[[str], Iterable[str]]) -> bool:
    """Whether a parent is on the list of a node, or of one that is above the node.

    Parents are nodes too, and have lists of their own.

    >>> lists = {"n1": ("m1", "m2"), "m1": ("top",)}
    >>> is_above("top", "n1", lambda one: lists.get(one, ()))
    True
    >>> is_above("n1", "top", lambda one: lists.get(one, ()))
    False
    """
    seen: set[str] = set()
    open_ = [node]
    while open_:
        above = [one for one in listed(open_.pop()) if one not in seen]
        if parent in above:
            return True
        seen.update(above)
        open_ += above
    return False


class Charge:
    """Whose a node is: the first parent's on its list, or another's while that one hears it.

    The root keeps nodes without a list. A parent acts on what it keeps, and on nothing else.
    """

    def __init__(self, side: Side, table: EntityTable, peer: Callable[[str], Peer | None]) -> None:
        self._side = side
        self._table = table
        self._peer = peer

    def keeps(self, node: str | None) -> bool:
        """Whether what is on this node is decided on here."""
        if node is None:
            return True
        listed = self.listed(node)
        if not listed:
            return self._side.name is None
        return listed[0] == self._side.name or self.hears(node)

    def may_keep(self, node: str) -> bool:
        """Whether the node may move here."""
        listed = self.listed(node)
        return self._side.name in listed if listed else self._side.name is None

    def hears(self, node: str) -> bool:
        """Whether the node's agent speaks with this parent now."""
        peer = self._peer(node)
        heard = peer is not None and peer.heard_at is not None and peer.tier is not Tier.LOST
        return heard and self.may_keep(node)

    def leads(self, parent: str, node: str) -> bool:
        """Whether what this parent says of the node counts: it is above it."""
        return is_above(parent, node, self.listed)

    def first_below(self, node: str) -> str | None:
        """The parent directly below this one by which the node is reached, if all are there."""
        own = self._side.name
        seen: set[str] = set()
        at = node
        while (listed := self.listed(at)) and at not in seen and own not in listed:
            seen.add(at)
            at = listed[0]
        return None if at == node else at

    def levels(self) -> list[set[str]]:
        """The parents below this one, level by level, as the nodes' lists have it."""
        return at_once(self.levelling())

    def levelling(self) -> Pieces[list[set[str]]]:
        """As `levels`, piece by piece."""
        own = self._side.name
        every: set[str] = set()
        for some in slices(self._table.nodes(), READ_AT_ONCE):
            every.update(one for node in some for one in self.listed(node))
            yield READING_EACH * len(some)
        lists = {one: self.listed(one) for one in every}
        level = {one for one in every if own in lists[one] or (own is None and not lists[one])}
        found: list[set[str]] = []
        while level and len(found) < len(every):
            found.append(level)
            level = {one for one in every if not level.isdisjoint(lists[one])}
        return found

    def listed(self, node: str) -> tuple[str, ...]:
        """The parents that the node may have, the first one first."""
        row = self._table.get(node_id(node))
        return () if row is None else parents_of(row.desired.attributes)
