"""Which end of a chain this engine is: a parent's, or a node's own agent's."""

from collections.abc import Callable
from dataclasses import dataclass, field

from haptera.model.entity import EntityId
from haptera.model.parts import Context, Part

# The name that an engine gives to the parent above, to which it reports.
PARENT = "parent"
# Before the names of parents below, which are nodes' names too: no node's name has a colon.
_BELOW = f"{PARENT}:"


def below(parent: str) -> str:
    """The name that an engine gives to a parent below as its neighbour.

    >>> below("m1")
    'parent:m1'
    """
    return f"{_BELOW}{parent}"


def parent_below(neighbour: str) -> str | None:
    """Which parent below a neighbour is; None where it is none."""
    return neighbour.removeprefix(_BELOW) if neighbour.startswith(_BELOW) else None


def named(neighbour: str) -> str:
    """In words: who a neighbour is."""
    if neighbour == PARENT:
        return "the parent"
    parent = parent_below(neighbour)
    return f"the agent of {neighbour}" if parent is None else f"the parent {parent}"


@dataclass(frozen=True, slots=True)
class Side:
    """`node` is the agent's own node, None on a parent; `instance` is new for each process.

    `hello_ns` is H, which all timers of the tree are multiples of. `draw` gives the share, between
    0 and 1, of a back-off that is waited; by default all of it. `name` is how nodes' lists of
    parents call this one; None: the root. A parent that `reports` has a link to the one above, as
    each agent has.
    """

    context: Context
    node: str | None
    instance: int
    kernel_boot: str
    hello_ns: int
    draw: Callable[[], float] = field(default=lambda: 1.0, compare=False)
    name: str | None = None
    reports: bool = False

    @property
    def has_uplink(self) -> bool:
        """Whether what is desired comes from a parent above, by its link."""
        return self.node is not None or self.reports

    @property
    def has_downlink(self) -> bool:
        """Whether it may have neighbours below: agents, and other parents."""
        return self.node is None

    def runs(self, part: Part) -> bool:
        """Whether this side runs the part; the other side's are planned, and waited for."""
        return part.context is self.context

    def owns(self, entity: EntityId) -> bool:
        """Whether the entity is of this side's concern: a parent's all, an agent's node's."""
        return self.node is None or entity.node == self.node
