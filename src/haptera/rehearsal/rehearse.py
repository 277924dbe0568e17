"""One run of a rehearsal: the change is asked for, time passes, and what came of it is a value."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Final, NamedTuple

import msgspec

from haptera.controllers.groups import LOOK_AGAIN_S
from haptera.controllers.roll.controller import TICK_S
from haptera.core.state.limits import S
from haptera.core.state.row import EntityState
from haptera.core.state.selecting import meant
from haptera.core.views.query import detail
from haptera.kinds.meaning import check_selector
from haptera.kinds.node import Busy, busy
from haptera.model.answers.views import SETTLED, Condition, EntityView
from haptera.model.changes import Author, Change, Declare
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from haptera.model.token_scope import Scope
from haptera.planner.domain.pieces import at_once
from haptera.rehearsal.faults import PlannedFault, inject
from haptera.rehearsal.invariants import BrokenInvariant, Invariant
from haptera.rehearsal.present import Present
from haptera.selectors.nodeset import fold
from haptera.selectors.selector import parse_selector
from haptera.testing.actual import Doing
from haptera.testing.folded import FoldedWorld

# The time for the present to settle before the change; what has not is reported.
REST_S: Final = 3_600
DAYS_MAX: Final = 31
_DAY_S: Final = 86_400
# Controllers look again by themselves so often: after twice that, none of them has more to say.
QUIET_S: Final = 2 * max(LOOK_AGAIN_S, TICK_S)
# How finely what waits and what is broken is looked at, in virtual seconds; for less than an hour
# of change each second, later by the share of the time that has passed.
FINE_S: Final = 1.0
COARSE: Final = 1 / 600
# The most reasons for waiting, and the most stuck entities, that are reported.
TOLD_MAX: Final = 20
# An entity in a sentence, with what joins it to another.
_ONE: Final = r"[a-z]+:[\w.-]*\w(?:@[\w.-]*\w)?"
_NAMED: Final = re.compile(rf"\b{_ONE}(?:, {_ONE})*")


class Span(msgspec.Struct, frozen=True):
    """A step of the rehearsal, in seconds since the change."""

    entity: str
    node: str | None
    part: str
    from_s: float
    to_s: float
    disruptive: bool
    failed: bool


class RehearsalRun(msgspec.Struct, frozen=True):
    """The result of one run, in seconds since the change.

    `settled_s` is None where not all was as desired at the horizon. `waited_s` sums up, by reason,
    for how long entities waited; `stuck` are those that were stuck or waited at the end, and why;
    `restless` were not as desired before the change was made, either. `refused` is why the change
    was not accepted at all.
    """

    seed: int
    settled_s: float | None
    spans: list[Span]
    waited_s: dict[str, float]
    stuck: dict[str, str]
    restless: dict[str, str]
    refusals: int
    breaches: list[BrokenInvariant]

    @property
    def disrupted(self) -> set[str]:
        """The nodes on which a disruptive step ran."""
        return {one.node or one.entity for one in self.spans if one.disruptive}

    @property
    def disrupted_at_once(self) -> int:
        """The most disruptive steps that ran at once."""
        return most_at_once(one for one in self.spans if one.disruptive)


class Rehearsal(NamedTuple):
    """A rehearsal's script: changes at 0 s, faults at their times, and invariants throughout.

    One that is played `until_broken` ends at the first invariant that does not hold.
    """

    changes: Sequence[Change]
    faults: Sequence[PlannedFault] = ()
    invariants: Sequence[Invariant] = ()
    horizon_s: float = _DAY_S
    until_broken: bool = False


def rehearse(
    present: Present,
    rehearsal: Rehearsal,
    seed: int,
    progress: Callable[[float], None] = lambda _: None,
) -> RehearsalRun:
    """Play the change once; the same seed gives the same run.

    Raises:
        HapteraError: the change is refused, or the cluster's modules cannot be planned with.
    """
    _check_faults(present, rehearsal)
    with closing(_begun(present, seed)) as world:
        return _play(world, rehearsal, progress)


def meant_in(present: Present, selector: str) -> list[EntityView]:
    """The entities that a selector means before anything is looked at.

    Raises:
        HapteraError: the selector is none.
    """
    wanted = check_selector(parse_selector(selector))
    with closing(_copied(present, 0)) as world:
        now = world.clock.now
        return [detail(row, now) for row in at_once(meant(world.engine.table, [wanted], now))]


def _copied(present: Present, seed: int) -> FoldedWorld:
    """The copy of the cluster, as it is when time begins."""
    return FoldedWorld(
        seed,
        present.kinds,
        present.manifests,
        present.entities,
        present.values,
        present.pace,
        present.controllers,
    )


def _begun(present: Present, seed: int) -> FoldedWorld:
    """The copy of the cluster, at rest."""
    world = _copied(present, seed)
    world.set_wall(present.wall_s)
    held = [
        one.name
        for one, values in present.values.items()
        if one == node_id(one.name) and values.get(busy.name) == Busy.BUSY
    ]
    choose = world.clock.rng("jobs").choice
    for node, after_s in present.jobs.ends(sorted(held), choose):
        world.clock.after(int(after_s * S), world.actual.set, node_id(node), busy.name, Busy.FREE)
    _rest(world)
    # Its schedule is of the moment at which the change is made.
    world.set_wall(present.wall_s)
    return world


def _play(
    world: FoldedWorld, rehearsal: Rehearsal, progress: Callable[[float], None]
) -> RehearsalRun:
    restless = dict(_unsettled(world))
    world.actual.done.clear()
    world.actual.refusals = 0
    began_at = world.clock.now
    ticket = world.propose(rehearsal.changes, author=Author("site", may=Scope.ADMIN))
    for fault in rehearsal.faults:
        world.clock.after(int(fault.at_s * S), inject, world, fault)
    watched = _Watched(world, rehearsal, began_at)
    settled_at = watched.to_the_end(ticket, progress)
    return RehearsalRun(
        world.clock.seed,
        None if settled_at is None else (settled_at - began_at) / S,
        [_span(one, began_at) for one in world.actual.done],
        watched.waited_s,
        {} if settled_at is not None else dict(_unsettled(world)),
        restless,
        world.actual.refusals,
        watched.breaches,
    )


def _span(one: Doing, began_at: int) -> Span:
    from_s, to_s = (one.began_at - began_at) / S, (one.ended_at - began_at) / S
    return Span(
        str(one.entity), one.entity.node, one.part, from_s, to_s, one.disruptive, one.failed
    )


class _Watched:
    """Observations of the world while time passes."""

    def __init__(self, world: FoldedWorld, rehearsal: Rehearsal, began_at: int) -> None:
        self.waited_s: dict[str, float] = {}
        self.breaches: list[BrokenInvariant] = []
        self._world = world
        self._rehearsal = rehearsal
        self._began_at = began_at
        self._accepted = False

    def to_the_end(self, ticket: int, progress: Callable[[float], None]) -> int | None:
        """Let time pass until all is as desired or the horizon is reached; when it was."""
        world, clock = self._world, self._world.clock
        end = self._began_at + int(self._rehearsal.horizon_s * S)
        last_fault_s = max((one.until_s for one in self._rehearsal.faults), default=0.0)
        quiet_ns = 0 if world.controllers is None else int(QUIET_S * S)
        still_from: int | None = None
        while clock.now < end:
            passed_s = (clock.now - self._began_at) / S
            step_s = max(FINE_S, passed_s * COARSE)
            world.run_until(min(end, clock.now + int(step_s * S)))
            self._check(ticket)
            self._look(step_s)
            progress(passed_s)
            if self._rehearsal.until_broken and self.breaches:
                return None
            if passed_s < last_fault_s or not self._accepted or not world.is_still():
                still_from = None
                continue
            still_from = clock.now if still_from is None else still_from
            if clock.now - still_from >= quiet_ns:
                return self._done_at() if world.settled() else None
        return None

    def _done_at(self) -> int:
        return max((one.ended_at for one in self._world.actual.done), default=self._began_at)

    def _check(self, ticket: int) -> None:
        reply = self._world.parent.replies.pop(ticket, None)
        if reply is None:
            return
        if reply.refusal is not None:
            raise HapteraError(f"the change would be refused: {reply.refusal}")
        self._accepted = True

    def _look(self, step_s: float) -> None:
        if self._world.parent.engine is None:
            return
        for row in self._world.engine.table:
            if row.stance.condition in (Condition.WAITING, Condition.STUCK):
                why = _reason(row)
                self.waited_s[why] = self.waited_s.get(why, 0.0) + step_s
        at_s = (self._world.clock.now - self._began_at) / S
        broken = {one.invariant for one in self.breaches}
        for one in self._rehearsal.invariants:
            if str(one) not in broken and (said := one.broken(self._world)) is not None:
                self.breaches.append(BrokenInvariant(str(one), at_s, said))


def _check_faults(present: Present, rehearsal: Rehearsal) -> None:
    """See that what breaks is there, or will be."""
    there = {one.entity for one in present.entities}
    there |= {one.entity for one in rehearsal.changes if isinstance(one, Declare)}
    for fault in rehearsal.faults:
        if gone := [one for one in fault.on if node_id(one) not in there]:
            what, do = f"there is no node {fold(gone)}", "name nodes of the cluster"
            raise HapteraError(what, where=f"--fault '… {fault.what}'", do=do)


def _rest(world: FoldedWorld) -> None:
    """Let the present come to rest: what it does anyway is no part of the change."""
    for _ in range(REST_S // 60):
        world.run(60)
        if world.is_still():
            return


def _unsettled(world: FoldedWorld) -> Iterable[tuple[str, str]]:
    rows = [row for row in world.engine.table if row.stance.condition not in SETTLED]
    for row in rows[:TOLD_MAX]:
        yield str(row.id), row.stance.why or str(row.stance.condition)


def _reason(row: EntityState) -> str:
    """The reason for a wait, without names of entities, so that equal waits count together."""
    return _NAMED.sub("…", row.stance.why or str(row.stance.condition))


def most_at_once(spans: Iterable[Span]) -> int:
    """The most spans that overlap."""
    edges = sorted(edge for one in spans for edge in ((one.from_s, 1), (one.to_s, -1)))
    most = now = 0
    for _, change in edges:
        now += change
        most = max(most, now)
    return most
