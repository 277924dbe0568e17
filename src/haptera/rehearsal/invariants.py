"""Conditions that should hold throughout: `always: count(power=off) <= 10%`."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from haptera.core.state.selecting import meant
from haptera.kinds import node
from haptera.model.errors import ParseError
from haptera.planner.domain.pieces import at_once
from haptera.selectors.selector import Selector, parse_selector
from haptera.testing.folded import FoldedWorld

_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "below": operator.lt,
    "above": operator.gt,
}
_INVARIANT: Final = re.compile(
    r"(?P<word>always|never):\s*(?:count\((?P<of>.+)\)|(?P<bare>.+?))"
    r"\s*(?P<how><=|>=|=|<|>|\bbelow\b|\babove\b)\s*(?P<number>\d{1,7})\s*(?P<share>%?)"
)


class BrokenInvariant(msgspec.Struct, frozen=True):
    """An invariant that did not hold, when first, in seconds since the change, and how."""

    invariant: str
    at_s: float
    how: str


@dataclass(frozen=True)
class Invariant:
    """A number of entities that a selector means, compared with a limit, always or never so."""

    text: str
    selector: Selector
    how: str
    limit: int
    is_share: bool
    always: bool

    def __str__(self) -> str:
        return self.text

    def broken(self, world: FoldedWorld) -> str | None:
        """The way in which it does not hold now, in words; None where it does."""
        found = at_once(meant(world.engine.table, [self.selector], world.clock.now))
        count = len(found)
        limit = float(self.limit)
        if self.is_share:
            nodes = sum(1 for one in world.engine.table if one.kind.name == node.kind.name)
            limit = nodes * self.limit / 100
        if _COMPARE[self.how](count, limit) is self.always:
            return None
        return f"{count} where {self.text.partition(':')[0]} {self.how} {limit:g} was meant"


def parse_invariant(text: str) -> Invariant:
    """Read an invariant; a share is of all nodes.

    >>> one = parse_invariant("never: count(service:web and run=running) below 3")
    >>> one.always, one.how, one.limit, str(one.selector)
    (False, 'below', 3, 'service:web and run=running')

    Raises:
        HapteraError: it is none, or its selector cannot be read.
    """
    found = _INVARIANT.fullmatch(text.strip())
    if found is None:
        raise ParseError(
            f"{text!r} is no invariant",
            do="write 'always: count(SELECTOR) <= N' or 'never: count(SELECTOR) below N%'",
        )
    return Invariant(
        text.strip(),
        parse_selector(found["of"] or found["bare"]),
        found["how"],
        int(found["number"]),
        bool(found["share"]),
        found["word"] == "always",
    )
