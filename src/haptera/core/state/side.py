"""The side of a chain that this engine is: a parent's, or a node's own agent's."""

from collections.abc import Callable
from dataclasses import dataclass, field

from haptera.model.entity import EntityId
from haptera.model.parts import Context, Part

# The name that an agent's engine gives to its parent.
PARENT = "parent"


def named(neighbour: str) -> str:
    """In words: who a neighbour is."""
    return "the parent" if neighbour == PARENT else f"the agent of {neighbour}"


@dataclass(frozen=True, slots=True)
class Side:
    """`node` is the agent's own node, None on a parent; `instance` is new for each process.

    `hello_ns` is H, which all timers of the tree are multiples of. `draw` gives the share, between
    0 and 1, of a back-off that is waited; by default all of it. `name` is how nodes' lists of
    parents call this one; None: the root. A parent that starts asks its nodes at once what they
    know, with so much time between two as `greet_each_ns`; None: it waits for their hellos.
    A `folded` parent, as of a rehearsal, runs the parts of all sides: the gates of nodes answer it
    themselves, without agents.
    """

    context: Context
    node: str | None
    instance: int
    kernel_boot: str
    hello_ns: int
    draw: Callable[[], float] = field(default=lambda: 1.0, compare=False)
    name: str | None = None
    greet_each_ns: int | None = None
    folded: bool = False

    @property
    def is_root(self) -> bool:
        """Whether nobody is above."""
        return self.node is None and self.name is None

    def runs(self, part: Part) -> bool:
        """Whether this side runs the part; the other side's are planned, and waited for."""
        return part.context is self.context

    def owns(self, entity: EntityId) -> bool:
        """Whether the entity is of this side's concern: a parent's all, an agent's node's."""
        return self.node is None or entity.node == self.node
