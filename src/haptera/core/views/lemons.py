"""Counts of what went wrong on each node, by what was recorded of it.

Each trouble is counted once, when it begins: a parent that starts anew records what it finds again.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from haptera.health.rule import Grade
from haptera.kinds import health, node
from haptera.kinds.node import Agent, Power
from haptera.kinds.service import Run, run
from haptera.model.answers.lemons import Lemon
from haptera.model.answers.past import REMEMBERED, Changed, Happened, Sort
from haptera.model.entity import EntityId, parse_entity

# By node and by the name of the count.
Counts = Counter[tuple[str, str]]
LOST, FAILED_JOBS, RESTARTS, ILL, FAILED_STEPS = COUNTS = (
    "lost",
    "failed_jobs",
    "restarts",
    "ill",
    "failed_steps",
)
# The variables that tell of trouble, of nodes and of what runs on them.
FOLLOWED: Final = (node.agent.name, node.power.name, run.name)
_WELL: Final = {None, Grade.OK.value}


def lemons(nodes: Collection[str], counts: Counts) -> list[Lemon]:
    """These nodes, the worst first; one without any trouble is left out."""
    totals = Counter[str]()
    for (name, trouble), count in counts.items():
        if name in nodes:
            totals[trouble] += count
    found = []
    for name in nodes:
        own = {one: counts[name, one] for one in COUNTS}
        if any(own.values()):
            excess = sum(own[one] / (1 + totals[one] / len(nodes)) for one in COUNTS)
            found.append(Lemon(name, **own, excess=round(excess, 1)))
    return sorted(found, key=lambda one: (-one.excess, one.node))


def count_troubles(
    happened: Iterable[Happened],
    changed: Iterable[Changed],
    failed_jobs: Iterable[str],
    since: float,
) -> Counts:
    """Those of each node since a time; what is older tells how it was before.

    `happened` is in order of time; `failed_jobs` has the node of each job that failed.
    """
    counts = Counts((name, FAILED_JOBS) for name in failed_jobs)
    counts.update(_found_ill(changed, since))
    follower = _Follower()
    for one in happened:
        trouble = follower.follow(one)
        if trouble is not None and one.at_s >= since:
            counts[trouble] += 1
    return counts


def _found_ill(changed: Iterable[Changed], since: float) -> Iterator[tuple[str, str]]:
    for one in changed:
        if one.name == health.grade.name and one.at_s >= since:
            before, after = one.before in _WELL, one.after in _WELL
            if before and not after:
                yield parse_entity(one.entity).name, ILL


class _Follower:
    """The last value seen of each variable that is followed."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], str | None] = {}

    def follow(self, one: Happened) -> tuple[str, str] | None:
        """The node and the trouble that this is the begin of."""
        if one.entity == "" or one.name is None:
            return None
        entity = parse_entity(one.entity)
        if entity.node is None:
            return None
        if one.sort is Sort.TRIED:
            return (entity.node, FAILED_STEPS) if one.value == "failed" else None
        if one.sort is Sort.SEEN and (trouble := self._seen(entity, one)) is not None:
            return entity.node, trouble
        return None

    def _seen(self, entity: EntityId, one: Happened) -> str | None:
        name, value = str(one.name), one.value
        before = self._last.get((one.entity, name))
        self._last[one.entity, name] = value
        if name == run.name:
            was = (before or "").removesuffix(REMEMBERED)
            return RESTARTS if value == Run.FAILED and was != Run.FAILED else None
        if entity.kind != node.kind.name:
            return None
        powered = self._last.get((one.entity, node.power.name))
        if name == node.power.name:
            # A step that switches it off first has what is known of it forgotten.
            by_itself = before == Power.ON and value == Power.OFF
            up = self._last.get((one.entity, node.agent.name)) == Agent.UP
            return LOST if by_itself and up else None
        gone = name == node.agent.name and before == Agent.UP and value != Agent.UP
        # One that is switched off, or being so, is not lost; of some machines no power is read.
        return LOST if gone and powered in {None, Power.ON.value} else None
