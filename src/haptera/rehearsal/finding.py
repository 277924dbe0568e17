"""A search for faults that break a condition, and the smallest history that still does.

Faults are drawn at random, few at first, and of a history that breaks a condition all is taken
away that it does not need. Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing
Input", IEEE TSE 2002, without its halving: there are few faults.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from haptera.kinds import node
from haptera.model.errors import HapteraError
from haptera.rehearsal.faults import FAULTS, LASTS_S, PARENT_DIES, PlannedFault
from haptera.rehearsal.invariants import BrokenInvariant
from haptera.rehearsal.present import Present
from haptera.rehearsal.rehearse import Rehearsal, RehearsalRun, Span, rehearse
from haptera.testing.clock import Clock

# The most faults of one history, and the most nodes that one of them is on.
FAULTS_MAX: Final = 3
NODES_MAX: Final = 3
# The most runs that make a history smaller, and steps that are shown of it.
SHRINKING_MAX: Final = 100
STEPS_MAX: Final = 20
# A fault begins within so long where the change takes no time.
BEGINS_S: Final = 60.0


class BreakingHistory(msgspec.Struct, frozen=True):
    """A history that breaks a condition: its seed and faults, which replay it, and its last steps.

    `faults` are as `--fault` takes them.
    """

    seed: int
    faults: list[str]
    breach: BrokenInvariant
    steps: list[Span]


class SearchedHistories(msgspec.Struct, frozen=True):
    """The result of a search: how many histories were tried, and the smallest that was found."""

    tried: int
    found: BreakingHistory | None

    @property
    def is_good(self) -> bool:
        """True if none was found."""
        return self.found is None


def find(
    present: Present,
    rehearsal: Rehearsal,
    seeds: Sequence[int],
    progress: Callable[[int], None] = lambda _: None,
) -> SearchedHistories:
    """Search for a history that breaks a condition, the first without a fault of the search.

    Raises:
        HapteraError: there is no condition to break, or the change is refused.
    """
    if not rehearsal.invariants:
        do = "add --hold 'never: count(SELECTOR) below N'"
        raise HapteraError("there is no condition to break", where="--find", do=do)
    script = rehearsal._replace(until_broken=True)
    calm = rehearse(present, script, seeds[0])
    if calm.breaches:
        return SearchedHistories(1, _told(script, calm))
    ends_s = calm.settled_s or BEGINS_S
    for tried, seed in enumerate(seeds, start=2):
        progress(tried)
        drawn = _drawn(present, seed, ends_s)
        run = rehearse(present, _with(script, drawn), seed)
        if run.breaches:
            return SearchedHistories(tried, _told(*_shrunk(present, script, drawn, run)))
    return SearchedHistories(len(seeds) + 1, None)


def _drawn(present: Present, seed: int, ends_s: float) -> list[PlannedFault]:
    """The faults of a seed: more of them the later the seed, for few are easily understood."""
    rng = Clock(seed).rng("faults")
    nodes = sorted(one.entity.name for one in present.entities if one.entity.kind == node.kind.name)
    faults = []
    for _ in range(rng.randint(1, FAULTS_MAX)):
        what = rng.choice([*FAULTS] if nodes else [PARENT_DIES])
        count = 0 if what == PARENT_DIES else rng.randint(1, min(NODES_MAX, len(nodes)))
        on = tuple(sorted(rng.sample(nodes, count)))
        at_s, for_s = rng.randint(0, int(ends_s)), rng.randint(1, int(LASTS_S))
        faults.append(PlannedFault(what, on, float(at_s), float(for_s)))
    return faults


def _shrunk(
    present: Present, script: Rehearsal, faults: list[PlannedFault], run: RehearsalRun
) -> tuple[Rehearsal, RehearsalRun]:
    """The script with as little of these faults as still breaks the same condition."""
    broken = run.breaches[0].invariant
    left = SHRINKING_MAX
    smaller = _smaller(faults)
    while left and (tried := next(smaller, None)) is not None:
        left -= 1
        again = rehearse(present, _with(script, tried), run.seed)
        if again.breaches and again.breaches[0].invariant == broken:
            faults, run, smaller = tried, again, _smaller(tried)
    return _with(script, faults), run


def _smaller(faults: list[PlannedFault]) -> Iterator[list[PlannedFault]]:
    """Without one of them, without one of its nodes, or for half the time: the boldest first."""
    for number in range(len(faults)):
        yield [*faults[:number], *faults[number + 1 :]]
    for number, one in enumerate(faults):
        rest = faults[:number], faults[number + 1 :]
        for name in one.on if len(one.on) > 1 else ():
            on = tuple(other for other in one.on if other != name)
            yield [*rest[0], replace(one, on=on), *rest[1]]
        if one.for_s >= 2:
            yield [*rest[0], replace(one, for_s=float(int(one.for_s / 2))), *rest[1]]


def _with(script: Rehearsal, faults: Sequence[PlannedFault]) -> Rehearsal:
    return script._replace(faults=[*script.faults, *faults])


def _told(script: Rehearsal, run: RehearsalRun) -> BreakingHistory:
    breach = run.breaches[0]
    steps = sorted((one for one in run.spans if one.from_s <= breach.at_s), key=_by_end)
    return BreakingHistory(run.seed, [*map(str, script.faults)], breach, steps[-STEPS_MAX:])


def _by_end(one: Span) -> tuple[float, str]:
    return one.to_s, one.entity
