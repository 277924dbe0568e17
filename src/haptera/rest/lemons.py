"""The answer of a parent on nodes that fail more often than others."""

import msgspec

from haptera.model.answers.lemons import Lemon


class Lemons(msgspec.Struct, frozen=True):
    """The nodes on which anything went wrong `since` a time, the worst first, out of so many."""

    since: float
    nodes: int
    lemons: list[Lemon]
