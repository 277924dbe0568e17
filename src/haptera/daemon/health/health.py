"""Keeps the health of all nodes: reads measurements, judges and decides by them, and writes.

What must outlive it is written: which nodes are in care, as entities of the kind `health`. What was
read is not; a parent that starts anew judges by what it reads from then on.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Final, Protocol

from haptera.controllers.node_work import work_patch
from haptera.core.state.allowance import READ_AT_ONCE, READING_EACH
from haptera.daemon.queue.linked import linked
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.daemon.samples.sample_board import SampleBoard
from haptera.health.bundled import BUNDLED
from haptera.health.care import (
    FRESH_S,
    CareDecision,
    CareLimits,
    CareStage,
    Patient,
    decide_care,
    words_of,
)
from haptera.health.judge import Symptom
from haptera.health.readings import Timed
from haptera.health.rule import Grade, HealthRule
from haptera.health.scores import Score, ScoreBoard
from haptera.health.ward import Ward
from haptera.kinds import health, node, replica
from haptera.kinds.node import NodeWork
from haptera.kinds.rules import budget, health_score
from haptera.kinds.rules import health_rule as health_rules
from haptera.kinds.rules.budget import COUNT_MAX, Per
from haptera.kinds.rules.health_rule import health_rule
from haptera.kinds.service import Run
from haptera.model.answers.views import BrakeView, EntityView
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.model.samples import SampleBatch
from haptera.planner.domain.pieces import Pieces, slices
from haptera.runtime import clock
from haptera.runtime.over_turns import over_turns
from haptera.runtime.processes.control import Readable, Source
from haptera.sdk import Cluster, Conflict
from haptera.sdk.boundary import Boundary
from haptera.sdk.failures import cut

NAME: Final = "health"
# The author of the controller's own drains.
WHO: Final = f"controller:{NAME}"
LOOK_EVERY_S: Final = 5.0
# A node is judged by the tracks of all its sensors. Nodes judged at once, and what one costs, in
# moves that a search could try.
JUDGED_AT_ONCE: Final = 20
JUDGING_EACH: Final = 250
KINDS: Final = tuple(
    one.kind.name for one in (node, replica, health, health_rules, health_score, budget)
)


Views = Mapping[str, EntityView]
Patch = dict[str, str | int | None]
Wish = Mapping[str, str | int | None]

_NOTHING: Final[Wish] = dict.fromkeys(one.name for one in health.kind.plain)


class Braked(Readable, Protocol):
    """The entities, and the state of the brake."""

    def brake(self) -> BrakeView: ...


class HealthSource(Source, Protocol):
    """The entities that health control uses, and the state of the brake."""

    @property
    def queries(self) -> Braked: ...


@dataclass(slots=True)
class HealthWrites:
    """The health entities to write, and what to desire of the work of nodes."""

    declare: dict[str, dict[str, str]] = field(default_factory=dict)
    desired: dict[str, Patch] = field(default_factory=dict)
    undeclare: list[str] = field(default_factory=list)


class HealthKeeper:
    """The health of all nodes of a parent."""

    def __init__(
        self,
        source: HealthSource,
        jobs: ParentQueue,
        board: SampleBoard,
        limits: CareLimits | None = None,
    ) -> None:
        self._source = source
        self._jobs = jobs
        self._board = board
        self._limits = limits or CareLimits()
        self.ward = Ward(BUNDLED)
        # Once the scores that an earlier process has written were read.
        self._scores: ScoreBoard | None = None

    async def run(self) -> None:
        """Keep it until cancelled."""
        cluster, control = linked(NAME, self._source)
        end = self._board.subscribe(self.measured)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(control.run())
                async for told in cluster.watch(kinds=KINDS, tick_s=LOOK_EVERY_S):
                    with Boundary(NAME):
                        await self._keep(cluster, told.now)
        finally:
            end()

    def measured(self, batch: SampleBatch) -> None:
        """Judge the measurements of a node."""
        if batch.entity.kind != node.kind.name:
            return
        now = clock.wall_s()
        for series, value in batch.values.items():
            self.ward.add(batch.entity.name, series, Timed(batch.at, value), now)

    async def _keep(self, cluster: Cluster[None], views: Views) -> None:
        writes = await over_turns(self.decide(views, clock.wall_s()))
        if not (writes.desired or writes.undeclare):
            return
        with suppress(Conflict):  # the next look decides on what is so then
            await cluster.write(writes.desired, declare=writes.declare, undeclare=writes.undeclare)

    def decide(self, views: Views, now: float) -> Pieces[HealthWrites]:
        """The writes that are due now; what is measured meanwhile counts where it is in time."""
        by_kind = yield from _by_kind(views.values())
        nodes = {one.name: one for one in by_kind[node.kind.name].values()}
        self._follow(by_kind[health_rules.kind.name].values())
        self.ward.keep_only(nodes)
        there = by_kind[health.kind.name]
        held = holders(by_kind[replica.kind.name].values())
        scores = by_kind[health_score.kind.name]
        board = self._scores = self._scores or ScoreBoard(_read_scores(scores.values()))
        self.ward.distrusted = board.distrusted(self.ward.rules)
        patients = list[Patient]()
        for some in slices(sorted(nodes), JUDGED_AT_ONCE):
            patients += (self._patient(nodes[one], there.get(one), held, now) for one in some)
            yield JUDGING_EACH * len(some)
        brake = self._source.queries.brake().why
        why = None if brake is None else f"the brake is on: {brake}"
        limits = limits_of(by_kind[budget.kind.name].values(), self._limits)
        decision = decide_care(patients, limits, now, why)
        writes = HealthWrites()
        for ones in slices(patients, READ_AT_ONCE):
            for one in ones:
                in_care = one.stage is not None or one.name in decision.spare
                board.look(one.name, one.symptoms, self.ward.rules, now, in_care=in_care)
                self._write(one, nodes[one.name], there.get(one.name), decision, writes)
            yield 2 * READING_EACH * len(ones)
        for name in sorted(there.keys() - nodes.keys()):
            _write(there[name].entity, there[name], _NOTHING, writes)
        for name, score in board.scores.items():
            entity = str(EntityId(health_score.kind.name, name, None))
            _write(entity, scores.get(name), asdict(score), writes)
        return writes

    def _follow(self, views: Iterable[EntityView]) -> None:
        rules: dict[str, HealthRule] = {one.name: one for one in BUNDLED}
        for view in views:
            values = {name: one.value for name, one in view.desired.items()}
            with suppress(HapteraError):  # it was checked as it was written: it is going
                rules[view.name] = health_rule(view.name, values)
        if rules != self.ward.rules:
            self.ward.follow(rules.values())

    def _patient(
        self, on: EntityView, view: EntityView | None, held: frozenset[str], now: float
    ) -> Patient:
        name = on.name
        self.ward.forget_unread(name, now)
        care = None if view is None else view.desired.get(health.care.name)
        # One that a person has spared is not ours to take out or to give back.
        own = care is not None and care.owner == WHO
        return Patient(
            name,
            self.ward.symptoms(name),
            CareStage(str(care.value)) if own and care is not None else None,
            name in held or self._is_busy(on),
            self.ward.well_since(name, now, FRESH_S),
        )

    def _is_busy(self, on: EntityView) -> bool:
        """True if jobs are there: the queue's own, or those of another batch system."""
        holder = self._jobs.queue.holders.get(on.name)
        drains = on.known_value(node.work.name) == NodeWork.DRAINING
        return drains or (holder is not None and bool(holder.held))

    def _write(
        self,
        one: Patient,
        view: EntityView,
        held: EntityView | None,
        decision: CareDecision,
        writes: HealthWrites,
    ) -> None:
        """The changes that are due of a node, and of its health as it is `held`."""
        stage = _stage(one, decision)
        entity = str(EntityId(health.kind.name, one.name, None))
        _write(entity, held, _wish(one, stage, decision), writes)
        self._set_work(one, view, stage, decision, writes)

    def _set_work(
        self,
        one: Patient,
        view: EntityView,
        stage: CareStage | None,
        decision: CareDecision,
        writes: HealthWrites,
    ) -> None:
        """Give it no new jobs while it is in care; a person's word on that stays."""
        work = view.desired.get(node.work.name)
        if stage is not None and work is None and one.name not in self._jobs.queue.duties:
            why = decision.spare.get(one.name) or _worst(one) or "in care for its health"
            writes.desired[view.entity] = {**work_patch(view, WHO, why)}
        elif stage is None and (patch := work_patch(view, WHO, None)):
            writes.desired[view.entity] = {**patch}


def _by_kind(views: Iterable[EntityView]) -> Pieces[dict[str, dict[str, EntityView]]]:
    """The views of each kind, by name; of those on nodes, by entity."""
    by_kind: dict[str, dict[str, EntityView]] = {kind: {} for kind in KINDS}
    for some in slices(views, READ_AT_ONCE):
        for view in some:
            by_kind[view.kind][view.name if view.node is None else view.entity] = view
        yield READING_EACH * len(some)
    return by_kind


def _read_scores(views: Iterable[EntityView]) -> dict[str, Score]:
    """The scores of rules, as entities hold them."""
    return {
        one.name: Score(**{key: int(held.value) for key, held in one.desired.items()})
        for one in views
    }


def limits_of(budgets: Iterable[EntityView], default: CareLimits) -> CareLimits:
    """The limits that the site's budgets of health say, the least of each; else the default."""
    said = [{name: one.value for name, one in view.desired.items()} for view in budgets]
    ours = [one for one in said if one.get(budget.per.name) == Per.HEALTH]
    if not ours:
        return default
    at_once = min(int(one.get(budget.at_once.name, COUNT_MAX)) for one in ours)
    share = min(int(one.get(budget.share.name, 100)) for one in ours)
    return replace(default, at_once=at_once, share=share)


def _write(
    entity: str,
    view: EntityView | None,
    wish: Wish,
    writes: HealthWrites,
) -> None:
    """Have this desired of a node's health, as far as it is ours; where nothing is, it goes."""
    patch = {key: value for key, value in wish.items() if _differs(view, key, value)}
    if view is None and patch:
        writes.declare[entity] = {}
    ours = view is not None and all(one.owner == WHO for one in view.desired.values())
    if ours and all(value is None for value in wish.values()):
        writes.undeclare.append(entity)
    elif patch:
        writes.desired[entity] = patch


def _stage(one: Patient, decision: CareDecision) -> CareStage | None:
    if one.name in decision.give_back:
        return None
    if one.name in decision.take_out:
        return CareStage.OUT
    return CareStage.SPARED if one.name in decision.spare else one.stage


def _wish(
    one: Patient, stage: CareStage | None, decision: CareDecision
) -> Mapping[str, str | int | None]:
    """The desired state of a node's health entity; empty for a node that is well."""
    if not one.symptoms and stage is None:
        return _NOTHING
    grade = one.symptoms[0].grade if one.symptoms else Grade.OK
    expected = [each.expected.likely for each in one.symptoms if each.expected is not None]
    why = decision.held.get(one.name)
    says = [*map(words_without_value, one.symptoms), *([] if why is None else [f"left: {why}"])]
    return {
        health.grade.name: grade.value,
        health.care.name: None if stage is None else stage.value,
        health.says.name: cut("; ".join(says), health.SAYS_BYTES_MAX) if says else None,
        health.since.name: int(min(each.since for each in one.symptoms)) if one.symptoms else None,
        # To the minute: it is another one with each reading.
        health.expected.name: int(min(expected) // 60 * 60) if expected else None,
    }


def words_without_value(one: Symptom) -> str:
    """A symptom in words that stay the same while the rule holds."""
    return f"{one.rule} ({one.sensor}): {one.grade}"


def _worst(one: Patient) -> str | None:
    return words_of(one.symptoms[0]) if one.symptoms else None


def holders(replicas: Iterable[EntityView]) -> frozenset[str]:
    """The nodes on which replicas are, or may be."""
    return frozenset(str(one.node) for one in replicas if _is_there(one))


def _is_there(one: EntityView) -> bool:
    return one.known_value("run") not in (Run.STOPPED, Run.FAILED)


def _differs(view: EntityView | None, name: str, value: str | int | None) -> bool:
    held = None if view is None else view.desired.get(name)
    if held is None:
        return value is not None
    return held.owner == WHO and held.value != value
