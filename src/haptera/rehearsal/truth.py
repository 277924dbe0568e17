"""A roll as it happened beside its rehearsal, which starts from the state before its write."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import permutations, takewhile
from statistics import median
from typing import Final

import msgspec

from haptera.controllers.roll.timeline import RollPhase, RollTimeline
from haptera.model.answers.past import Changed
from haptera.model.changes import Change, Declare, SetDesired, Undeclare, UnsetDesired
from haptera.model.entity import parse_entity
from haptera.rehearsal.rehearse import RehearsalRun, Span, most_at_once
from haptera.rehearsal.summary import Spread, spread

# Phases in which a system has left its old image, or tries to.
_AWAY: Final = (RollPhase.CHANGING, RollPhase.REFUSED)


class ComparedFigure(msgspec.Struct, frozen=True):
    """A figure of a roll as it happened, and as rehearsed; None where it did not come to that."""

    name: str
    happened: float | None
    rehearsed: Spread | None
    is_time: bool = False

    @property
    def off(self) -> float | None:
        """By what share of what happened the median of the rehearsal was above it."""
        if not self.happened or self.rehearsed is None:
            return None
        return (self.rehearsed.median - self.happened) / self.happened


class ComparedRoll(msgspec.Struct, frozen=True):
    """A roll and its rehearsal: figures, and the share of pairs of systems in the same order.

    `same_order` is over all runs, of pairs of systems of which one had changed over before the
    other began; None where there are none. `missing` modules are not installed here.
    """

    name: str
    revision: int
    first_seed: int
    runs: int
    figures: list[ComparedFigure]
    same_order: float | None
    missing: list[str]


def written(changes: Iterable[Changed]) -> Iterator[Change]:
    """The changes of a write as recorded, to be made once more; latest first, as the record is."""
    for one in reversed([*changes]):
        entity = parse_entity(one.entity)
        if one.name is not None:
            yield (
                UnsetDesired(entity, one.name)
                if one.after is None
                else SetDesired(entity, one.name, one.after, one.owner)
            )
        elif one.after is None:
            yield Undeclare(entity)
        else:
            yield Declare(
                entity, msgspec.json.decode(str(one.after), type=dict[str, str]), one.owner
            )


def happened_away(told: RollTimeline) -> list[Span]:
    """When each system of a roll changed over, by the record: one span a system."""
    found = []
    for lane in told.lanes:
        until_new = [*takewhile(lambda one: one.phase is not RollPhase.NEW, lane.spans)]
        if away := [one for one in until_new if one.phase in _AWAY]:
            times = (away[0].from_s - told.from_s, away[-1].to_s - told.from_s)
            failed = len(until_new) == len(lane.spans)
            found.append(_away(lane.entity, *times, failed=failed))
    return found


def rehearsed_away(run: RehearsalRun, systems: Collection[str]) -> list[Span]:
    """When each system changed over in a run: one span a system."""
    found: dict[str, Span] = {}
    for one in run.spans:
        if one.disruptive and one.entity in systems:
            before = found.get(one.entity, one)
            times = (min(before.from_s, one.from_s), max(before.to_s, one.to_s))
            found[one.entity] = _away(one.entity, *times, failed=one.failed)
    return [*found.values()]


def _away(system: str, from_s: float, to_s: float, *, failed: bool) -> Span:
    node = parse_entity(system).node
    return Span(system, node, RollPhase.CHANGING, from_s, to_s, disruptive=True, failed=failed)


def compared_roll(
    told: RollTimeline, revision: int, runs: Sequence[RehearsalRun], missing: Sequence[str]
) -> ComparedRoll:
    """A roll's record beside some runs of its rehearsal; at least one."""
    systems = {one.entity for one in told.lanes}
    real = happened_away(told)
    played = [rehearsed_away(run, systems) for run in runs]
    # What was not as desired before the write does not keep the roll from its end.
    ended = [
        some
        for some, run in zip(played, runs, strict=True)
        if run.settled_s is not None or run.stuck.keys() <= run.restless.keys()
    ]
    figures = [
        _figure("done after", _done_s(told, real), map(_end_s, ended), is_time=True),
        _figure("a system away for", _lasts_s(real), map(_lasts_s, played), is_time=True),
        _figure("away at once", most_at_once(real), map(most_at_once, played)),
        _figure("systems changed", len(real), map(len, played)),
    ]
    order = _same_order(real, played)
    return ComparedRoll(told.name, revision, runs[0].seed, len(runs), figures, order, [*missing])


def _figure(
    name: str,
    happened: float | None,
    rehearsed: Iterable[float | None],
    *,
    is_time: bool = False,
) -> ComparedFigure:
    values = [one for one in rehearsed if one is not None]
    return ComparedFigure(name, happened, spread(values) if values else None, is_time)


def _done_s(told: RollTimeline, real: Sequence[Span]) -> float | None:
    """When the last system had changed over, of a roll in which all of them did."""
    all_did = len(real) == len(told.lanes) and not any(one.failed for one in real)
    return _end_s(real) if all_did else None


def _end_s(some: Sequence[Span]) -> float | None:
    return max((one.to_s for one in some), default=None)


def _lasts_s(some: Sequence[Span]) -> float | None:
    return median(one.to_s - one.from_s for one in some) if some else None


def _same_order(real: Sequence[Span], played: Iterable[Sequence[Span]]) -> float | None:
    before = {
        (one.entity, other.entity) for one in real for other in real if one.to_s <= other.from_s
    }
    same = [
        one.to_s <= other.from_s
        for some in played
        for one, other in permutations(some, 2)
        if (one.entity, other.entity) in before
    ]
    return sum(same) / len(same) if same else None
