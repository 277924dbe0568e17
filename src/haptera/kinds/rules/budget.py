"""How many of some entities may be disrupted at once, and how often, on one side of a tree."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from haptera.kinds.rules.rule import OF_BYTES_MAX, parse_rule
from haptera.model.declared.desired_check import between
from haptera.model.declared.schema import Kind, Plain
from haptera.model.errors import HapteraError
from haptera.selectors.selector import ALL, Selector, parse_selector

COUNT_MAX = 1_000_000


class Per(StrEnum):
    """What a budget counts over."""

    NODE = "node"
    GROUP = "group"
    PARENT = "parent"
    # Those of one name, on whatever nodes: not what harms a node, but what is served.
    SERVICE = "service"
    # The nodes that are in care for their health; steps do not count.
    HEALTH = "health"
    # The nodes that are kept from jobs, by whoever's word; steps do not count.
    WORK = "work"


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit on disruptive steps of the entities that `of` selects.

    At once run at most `at_once` of them, and at most `share` percent of the nodes that it counts
    over, but one where the share is not 0; within an hour begin at most `per_hour`. None: no such
    limit.
    """

    per: Per
    of: Selector
    at_once: int | None = None
    share: int | None = None
    per_hour: int | None = None

    def at_once_max(self, nodes: int) -> int | None:
        """How many may run at once among so many nodes.

        >>> [DEFAULT[Per.PARENT].at_once_max(nodes) for nodes in (3, 100, 100_000)]
        [1, 5, 50]
        """
        limits = [] if self.at_once is None else [self.at_once]
        if self.share is not None:
            limits.append(max(min(1, self.share), nodes * self.share // 100))
        return min(limits, default=None)


_ALL: Final = parse_selector(ALL)
# What holds for an entity where no budget of its own is declared.
DEFAULT: Final = {
    Per.NODE: Budget(Per.NODE, _ALL, at_once=1, per_hour=3),
    Per.GROUP: Budget(Per.GROUP, _ALL, share=25),
    Per.PARENT: Budget(Per.PARENT, _ALL, share=5, at_once=50),
    Per.SERVICE: Budget(Per.SERVICE, _ALL, share=10),
}


def _check_per(text: str) -> None:
    if text not in list(Per):
        raise HapteraError(f"{text!r} is nothing to count by", do=f"write {', '.join(Per)}")


def _check_whole(values: Mapping[str, str | int]) -> None:
    """See that a budget that counts nodes says nothing that is not counted.

    Raises:
        HapteraError: it does.
    """
    unknown: Mapping[str, tuple[Plain, ...]]
    unknown = {Per.HEALTH: (of, per_hour), Per.WORK: (per_hour,)}
    odd = [one for one in unknown.get(str(values.get(per.name)), ()) if one.name in values]
    if odd:
        key = "for" if odd[0] is of else odd[0].name
        counts = "all nodes in care" if values[per.name] == Per.HEALTH else "nodes without jobs"
        what = f"a budget of {values[per.name]} has no `{key}`: it counts {counts}"
        raise HapteraError(what, do="write at_once, share or both")


def budget_of(values: Mapping[str, str | int]) -> Budget:
    """A budget as it is declared, by its desired values."""
    at_once_max, share_max, per_hour_max = (
        None if (value := values.get(one.name)) is None else int(value)
        for one in (at_once, share, per_hour)
    )
    of_whom = parse_selector(str(values.get(of.name, ALL)))
    return Budget(Per(str(values[per.name])), of_whom, at_once_max, share_max, per_hour_max)


# Without it, all entities.
of = Plain("budget", "of", str, OF_BYTES_MAX, parse_rule)
per = Plain("budget", "per", str, 8, _check_per)
at_once = Plain("budget", "at_once", int, 8, between(0, COUNT_MAX))
# In percent, of the entities that are there.
share = Plain("budget", "share", int, 8, between(0, 100))
per_hour = Plain("budget", "per_hour", int, 8, between(0, COUNT_MAX))

kind = Kind(
    "budget",
    (),
    plain=(of, per, at_once, share, per_hour),
    everywhere=True,
    count_max=1_000,
    whole=_check_whole,
)
