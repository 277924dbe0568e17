"""The cluster to rehearse on, as the API tells it: desired, observed, and measured durations."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from haptera.controllers.groups import controller as groups
from haptera.controllers.roll.controller import controller as roll
from haptera.kinds import KINDS, module
from haptera.kinds.brought import MODULES_GROUP, brought, imported, the_one
from haptera.model.changes import Desired, StoredEntity
from haptera.model.declared.schema import Kind
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
    serve stays as it is. `values` are the observed or remembered ones.
    """

    revision: int
    entities: tuple[StoredEntity, ...]
    values: Mapping[EntityId, Values]
    manifests: tuple[Manifest, ...]
    kinds: Mapping[str, Kind]
    pace: PartTimes = field(default_factory=PartTimes)
    missing: tuple[str, ...] = ()
    controllers: tuple[GivenController, ...] = ()
    jobs: MeasuredJobs = field(default_factory=MeasuredJobs)
    wall_s: float = 0.0


@dataclass(frozen=True)
class Additions:
    """What a change brings to a cluster: names of modules, and controllers with their settings."""

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
    given = {one.name: one.settings for one in besides.controllers}
    names = {view.name for view in views if view.kind == module.kind.name}
    names |= {*besides.modules, *given}
    known, missing = manifests_of(sorted(names - CONTROLLERS.keys()))
    entities, values = [], {}
    for view in views:
        if view.kind == module.kind.name or view.kind not in KINDS:
            continue
        entity = parse_entity(view.entity)
        desired = {name: Desired(one.value, one.owner) for name, one in view.desired.items()}
        owner = next((one.owner for one in desired.values()), "site")
        entities.append(StoredEntity(entity, view.attributes, owner, desired, view.revision))
        values[entity] = {name: one.value for name, one in view.observed.items()}
    return Present(
        answer.revision,
        tuple(entities),
        values,
        tuple(known),
        KINDS,
        pace_of(metrics),
        tuple(missing),
        tuple((CONTROLLERS[name], given.get(name, {})) for name in sorted(names & {*CONTROLLERS})),
        measured_jobs(jobs, wall_s),
        wall_s,
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
