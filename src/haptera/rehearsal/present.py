"""The cluster to rehearse on, as the API tells it: desired, observed, and measured durations."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from haptera.controllers.groups import controller as groups
from haptera.controllers.roll.controller import controller as roll
from haptera.kinds import KINDS, module, node
from haptera.kinds.brought import MODULES_GROUP, brought, imported, the_one
from haptera.kinds.node import Agent, Busy, Power
from haptera.model.answers.past import REMEMBERED, PastView
from haptera.model.changes import Desired, Stored, StoredEntity
from haptera.model.declared.schema import Applied, Kind
from haptera.model.entity import EntityId, parse_entity
from haptera.model.parts import Manifest
from haptera.modules import BUNDLED, load
from haptera.rehearsal.jobs import MeasuredJobs, measured_jobs
from haptera.rest.jobs import JobView
from haptera.rest.schemas import Entities
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.testing.actual import PartTimes, Values
from haptera.testing.controlling import GivenController

_NS_PER_S: Final = 1_000_000_000
# Those that only read and write state. `personality` also writes to Slurm, a real one.
CONTROLLERS: Final = {one.name: one for one in (groups, roll)}
_SAMPLE: Final = re.compile(r"haptera_(?P<name>\w+)\{(?P<labels>[^}]*)\} (?P<value>\S+)")
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Present:
    """The start of a rehearsal, at `wall_s` of people's time.

    `missing` are modules and controllers of the cluster that are not known here: what only those
    serve stays as it is. `values` are the observed or remembered ones; where they are `is_assumed`,
    nobody has looked.
    """

    revision: int
    entities: tuple[StoredEntity, ...]
    values: Mapping[EntityId, Values]
    manifests: tuple[Manifest, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=lambda: KINDS)
    pace: PartTimes = field(default_factory=PartTimes)
    missing: tuple[str, ...] = ()
    controllers: tuple[GivenController, ...] = ()
    jobs: MeasuredJobs = field(default_factory=MeasuredJobs)
    wall_s: float = 0.0
    is_assumed: bool = False


@dataclass(frozen=True)
class Additions:
    """The additions to a cluster by a change: names of modules, and controllers with settings."""

    modules: Collection[str] = ()
    controllers: Collection[ControllerPlace] = ()


def present_of(
    answer: Entities,
    wall_s: float,
    metrics: str = "",
    jobs: Iterable[JobView] = (),
    besides: Additions | None = None,
) -> Present:
    """The present, from the list of all entities, the parent's metrics and its queue.

    Raises:
        HapteraError: a package of this machine brings a kind or module that cannot be used.
    """
    views, besides = answer.entities, besides or Additions()
    names = {view.name for view in views if view.kind == module.kind.name}
    entities, values = [], {}
    for view in views:
        if view.kind == module.kind.name or view.kind not in KINDS:
            continue
        entity = parse_entity(view.entity)
        desired = {name: Desired(one.value, one.owner) for name, one in view.desired.items()}
        owner = next((one.owner for one in desired.values()), "site")
        entities.append(StoredEntity(entity, view.attributes, owner, desired, view.revision))
        values[entity] = {name: one.value for name, one in view.observed.items()}
    there = _with_modules(Present(answer.revision, tuple(entities), values), names, besides)
    measured = measured_jobs(jobs, wall_s)
    return replace(there, pace=pace_of(metrics), jobs=measured, wall_s=wall_s)


def present_of_past(
    then: Iterable[PastView],
    revision: int,
    wall_s: float,
    owner: str,
    modules: Iterable[str],
    metrics: str = "",
    jobs: Iterable[JobView] = (),
) -> Present:
    """The cluster as it was at a time, with durations as they are measured today.

    Who owned what is not in the past: all of it is its `owner`'s, whose write was accepted.

    Raises:
        HapteraError: a package of this machine brings a kind or module that cannot be used.
    """
    entities, values = [], {}
    for view in then:
        entity = parse_entity(view.entity)
        if entity.kind == module.kind.name or entity.kind not in KINDS:
            continue
        desired = {name: Desired(one, owner) for name, one in view.desired.items()}
        entities.append(StoredEntity(entity, view.attributes, owner, desired, revision))
        values[entity] = {name: one.removesuffix(REMEMBERED) for name, one in view.observed.items()}
    there = _with_modules(Present(revision, tuple(entities), values), {*modules}, Additions())
    measured = measured_jobs(jobs, wall_s)
    return replace(there, pace=pace_of(metrics), jobs=measured, wall_s=wall_s)


def present_of_stored(
    stored: Stored, modules: Iterable[str], wall_s: float, besides: Additions | None = None
) -> Present:
    """The present where only what is desired is known: all of it is assumed to be so.

    Raises:
        HapteraError: a package of this machine brings a kind or module that cannot be used.
    """
    entities = [
        one
        for one in stored.entities
        if one.entity.kind in KINDS and one.entity.kind != module.kind.name
    ]
    values = {one.entity: _assumed(one) for one in entities}
    there = Present(stored.revision, tuple(entities), values, wall_s=wall_s, is_assumed=True)
    return _with_modules(there, {*modules}, besides or Additions())


def _assumed(one: StoredEntity) -> Values:
    kind = KINDS[one.entity.kind]
    values = {
        name: variable.goal(str(desired.value))
        for name, desired in one.desired.items()
        if (variable := kind.variable(name)) is not None
    }
    values |= {variable.name: Applied.CURRENT for variable in kind.in_force}
    if values.get(node.power.name) == Power.ON:
        values |= {node.agent.name: Agent.UP, node.busy.name: Busy.FREE}
    return values


def _with_modules(there: Present, names: Collection[str], besides: Additions) -> Present:
    """The same with these modules and controllers, and those that a change brings."""
    given = {one.name: one.settings for one in besides.controllers}
    names = {*names, *besides.modules, *given}
    known, missing = manifests_of(sorted(names - CONTROLLERS.keys()))
    controllers = [(CONTROLLERS[one], given.get(one, {})) for one in sorted(names & {*CONTROLLERS})]
    return replace(
        there, manifests=tuple(known), missing=tuple(missing), controllers=tuple(controllers)
    )


def manifests_of(names: Iterable[str]) -> tuple[list[Manifest], list[str]]:
    """The manifests of modules of these names, and the names that are not installed here."""
    packaged = brought(MODULES_GROUP)
    known, missing = [], []
    for name in names:
        if name in BUNDLED:
            known.append(load(name).manifest())
        elif name in packaged:
            known.append(imported(the_one(packaged[name])).manifest())
        else:
            missing.append(name)
    return known, missing


def pace_of(metrics: str) -> PartTimes:
    """The durations and failure rates of parts, from a parent's Prometheus text.

    >>> text = 'haptera_part_usual_duration_seconds{part="labnode.switch_on"} 1.5'
    >>> pace_of(text).usual_ns
    {'labnode.switch_on': 1500000000}
    """
    usual_ns: dict[str, int] = {}
    ended: dict[str, dict[str, float]] = {}
    for found in _SAMPLE.finditer(metrics):
        labels = dict(_LABEL.findall(found["labels"]))
        try:
            value = float(found["value"])
        except ValueError:
            continue
        if found["name"] == "part_usual_duration_seconds" and "part" in labels:
            usual_ns[labels["part"]] = int(value * _NS_PER_S)
        elif found["name"] == "steps_total" and labels.keys() >= {"step", "outcome"}:
            ended.setdefault(labels["step"], {})[labels["outcome"]] = value
    failing = {
        step: counts.get("failed", 0.0) / total
        for step, counts in ended.items()
        if (total := sum(counts.values()))
    }
    return PartTimes(usual_ns, failing)
