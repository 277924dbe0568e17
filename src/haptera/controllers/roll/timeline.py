"""The course of a roll, read from the record: which phase each of its systems was in, and when."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import groupby, pairwise
from typing import Final, NamedTuple

import msgspec

from haptera.kinds import roll, system
from haptera.kinds.roll import RollWish
from haptera.kinds.system import SystemRun
from haptera.model.answers.past import REMEMBERED, Changed, Happened, PastView, Sort
from haptera.model.answers.views import Condition
from haptera.model.declared.schema import Applied
from haptera.model.errors import Code, HapteraError


class RollPhase(StrEnum):
    """Where a system stands on its way to the new image."""

    STAGING = "staging"  # the new image is fetched, verified and mounted beside the old one
    READY = "ready"  # it lies ready, and the turn of this system has not come
    WAITING = "waiting"  # its turn has come, and it waits, as for a job
    CHANGING = "changing"  # one image is stopped, the other one started and probed
    NEW = "new"  # it is known to run the new image
    REFUSED = "refused"  # what is desired was tried, and does not run there
    BACK = "back"  # it runs the old image again
    SILENT = "silent"  # how it stands is not known


# What lasts no longer is a turn of the parent, no phase.
BLINK_S: Final = 0.05
_AT_REST: Final = (RollPhase.NEW, RollPhase.BACK)
# So much of a roll's time is shown after it was over too: an eighth.
_AFTER: Final = 8
_Told = Changed | Happened


class RollSpan(msgspec.Struct, frozen=True, gc=False):
    """A system in one phase, in seconds since 1970, and the reason that stood for longest."""

    phase: RollPhase
    from_s: float
    to_s: float
    why: str | None = None


class RollLane(msgspec.Struct, frozen=True, gc=False):
    """One system: its spans follow each other without a gap."""

    entity: str
    spans: list[RollSpan]


class RollMark(msgspec.Struct, frozen=True, gc=False):
    """What happened to the whole roll, or to the parent."""

    at_s: float
    text: str


class RollTimeline(msgspec.Struct, frozen=True, gc=False):
    """A roll since it was last begun, until it was over, or until now."""

    name: str
    image: str
    from_s: float
    to_s: float
    lanes: list[RollLane]
    marks: list[RollMark]


class RollBegun(NamedTuple):
    """The write that began a roll: of these systems, to this image."""

    name: str
    image: str
    at_s: float
    systems: tuple[str, ...]
    revision: int


class _Moment(NamedTuple):
    at_s: float
    phase: RollPhase
    why: str | None


def begun(name: str, changes: Sequence[Changed]) -> RollBegun:
    """When a roll was last begun, by the changes of it and of systems, latest first.

    Beginning one sets its deadline and counts up the attempts of its systems, in one write.

    Raises:
        HapteraError: none is recorded.
    """
    entity = f"{roll.kind.name}:{name}"
    own = [one for one in changes if one.entity == entity]
    timed = {one.revision for one in own if one.name == roll.deadline.name}
    tried = [one for one in changes if one.name == system.attempt.name and one.revision in timed]
    if not tried:
        do = "see haptera roll status; the record goes back for some time only"
        raise HapteraError("no roll is recorded", where=entity, do=do, code=Code.NOT_FOUND)
    last = tried[0]
    images = (
        str(one.after)
        for one in own
        if one.name == roll.image.name and one.after is not None and one.revision <= last.revision
    )
    systems = sorted(one.entity for one in tried if one.revision == last.revision)
    return RollBegun(name, next(images, name), last.at_s, tuple(systems), last.revision)


def timeline(
    start: RollBegun,
    known: Iterable[PastView],
    changes: Iterable[Changed],
    happened: Iterable[Happened],
    *,
    known_s: int,
    now_s: float,
) -> RollTimeline:
    """The course of a roll, by how its systems were at `known_s` and by what came after that.

    Changes and happenings are given latest first. What was before `known_s` is not in it.
    """
    told = _told_of(known_s, changes, happened)
    from_s = max(start.at_s, known_s)
    own = [
        one
        for one in told[f"{roll.kind.name}:{start.name}"]
        if isinstance(one, Changed) and one.at_s > start.at_s
    ]
    before = {one.entity: one for one in known}
    moments: dict[str, list[_Moment]] = {}
    for name in start.systems:
        course = _Course(start.image, before.get(name))
        events = sorted([*told[name], *told[""]], key=lambda one: one.at_s)
        moments[name] = [*_moments(course, events, from_s)]
    over_s = _over_s(own) or _rested_s(moments.values())
    to_s = now_s if over_s is None else min(now_s, over_s + (over_s - from_s) / _AFTER)
    lanes = [RollLane(name, [*_spans(some, to_s)]) for name, some in moments.items()]
    marks = [
        RollMark(one.at_s, text)
        for one in sorted([*own, *told[""]], key=lambda one: one.at_s)
        if from_s < one.at_s <= to_s and (text := _text(one)) is not None
    ]
    return RollTimeline(start.name, start.image, from_s, to_s, lanes, marks)


def _told_of(
    known_s: int, changes: Iterable[Changed], happened: Iterable[Happened]
) -> defaultdict[str, list[_Told]]:
    """What came after, by entity, latest last; what is of no entity is under the empty name."""
    found: defaultdict[str, list[_Told]] = defaultdict(list)
    told: list[_Told] = [*changes, *happened]
    for one in told:
        if one.at_s > known_s:
            found[one.entity].append(one)
    for some in found.values():
        some.reverse()
    return found


def _rested_s(systems: Collection[Sequence[_Moment]]) -> float | None:
    """Since when none of them changes any more."""
    if any(some[-1].phase not in _AT_REST for some in systems):
        return None
    return max(
        at_s
        for some in systems
        for at_s in (
            some[0].at_s,
            *(two.at_s for one, two in pairwise(some) if one.phase is not two.phase),
        )
    )


def _over_s(own: Iterable[Changed]) -> float | None:
    """When it was finished or deleted, unless it was to be undone after that."""
    over: float | None = None
    for one in own:
        if one.name == roll.finished.name and one.after is not None:
            over = one.at_s
        elif one.name == roll.image.name and one.after is None:
            return over or one.at_s
        elif one.name == roll.wish.name and one.after == RollWish.UNDO:
            over = None
    return over


_WISHED: Final = {
    RollWish.RUN: "resumed",
    RollWish.PAUSE: "paused",
    RollWish.ABORT: "aborted",
    RollWish.UNDO: "to be undone",
}


def _text(one: _Told) -> str | None:
    """A mark in words; None where it is none."""
    if isinstance(one, Happened):
        return "the parent started" if one.sort is Sort.BEGUN else None
    if one.after is None:
        return None
    if one.name == roll.wish.name:
        return _WISHED[RollWish(str(one.after))]
    if one.name == roll.halted.name:
        return f"halted: {one.after}"
    return "done" if one.name == roll.finished.name else None


class _Course:
    """One system as it was reported so far."""

    def __init__(self, new: str, known: PastView | None) -> None:
        self._new = new
        self._image = None if known is None else known.desired.get(system.image.name)
        self._facts = {} if known is None else dict(known.observed)
        self._condition = None if known is None else known.condition
        self._why = None if known is None else known.why
        self._was_taken = self._image == new

    def take(self, one: _Told) -> None:
        """What came next."""
        if isinstance(one, Changed):
            self._desire(one)
        elif one.sort is Sort.SEEN and one.name is not None:
            self._facts.pop(one.name, None)
            if one.value is not None:
                self._facts[one.name] = one.value
        elif one.sort is Sort.STANDS:
            self._condition, self._why = one.value, one.note
        elif one.sort in (Sort.BEGUN, Sort.GONE):
            self._facts.clear()
            self._condition = self._why = None

    def _desire(self, one: Changed) -> None:
        """Another image is desired, or is to lie ready: what was known is of the one before."""
        outdated: tuple[str, ...] = ()
        if one.name == system.image.name and one.after != one.before:
            self._image = one.after
            self._was_taken |= self._image == self._new
            outdated = (system.applied.name, system.refused.name)
        elif one.name == system.spare.name:
            outdated = (system.staged.name,)
        for name in outdated:
            self._facts.pop(name, None)

    def at(self, at_s: float) -> _Moment:
        return _Moment(at_s, self._phase(), self._why)

    def _phase(self) -> RollPhase:
        run, acts = self._facts.get(system.run.name), self._condition == Condition.ACTING
        if self._is_current(system.refused.name):
            return RollPhase.REFUSED
        if not acts and (run is None or run.endswith(REMEMBERED)):
            return RollPhase.SILENT
        if not self._was_taken:
            ready = self._is_current(system.staged.name)
            return RollPhase.READY if ready else RollPhase.STAGING
        if self._is_current(system.applied.name) and run == SystemRun.RUNNING:
            return RollPhase.NEW if self._image == self._new else RollPhase.BACK
        return RollPhase.CHANGING if acts else RollPhase.WAITING

    def _is_current(self, name: str) -> bool:
        return self._facts.get(name) == Applied.CURRENT


def _moments(course: _Course, events: Iterable[_Told], from_s: float) -> Iterator[_Moment]:
    """How it stood at first, and after each event; at least one."""
    last = course.at(from_s)
    for one in events:
        if one.at_s > from_s:
            yield last
        course.take(one)
        last = course.at(max(one.at_s, from_s))
    yield last


def _spans(moments: Iterable[_Moment], to_s: float) -> Iterator[RollSpan]:
    """Moments in one phase as one, with the reason that stood for longest."""
    for phase, group in groupby(_lasting(moments, to_s), key=lambda one: one[0].phase):
        reasons: defaultdict[str | None, float] = defaultdict(float)
        some = [*group]
        for moment, end_s in some:
            reasons[moment.why] += end_s - moment.at_s
        why = max(reasons, key=reasons.__getitem__)
        yield RollSpan(phase, some[0][0].at_s, some[-1][1], why)


def _lasting(moments: Iterable[_Moment], to_s: float) -> Iterator[tuple[_Moment, float]]:
    """The moments, each with its end; what is over at once counts to what comes after it."""
    some = [one for one in moments if one.at_s < to_s]
    from_s: float | None = None
    for one, end_s in zip(some, [*(one.at_s for one in some[1:]), to_s], strict=True):
        from_s = one.at_s if from_s is None else from_s
        if end_s - one.at_s >= BLINK_S or one is some[-1]:
            yield one._replace(at_s=from_s), end_s
            from_s = None
