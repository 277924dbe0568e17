"""The cluster to rehearse on, as the API tells it: desired, observed, and measured durations."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from haptera.kinds import KINDS, module
from haptera.kinds.brought import MODULES_GROUP, brought, imported, the_one
from haptera.model.answers.views import EntityView
from haptera.model.changes import Desired, StoredEntity
from haptera.model.declared.schema import Kind
from haptera.model.entity import EntityId, parse_entity
from haptera.model.parts import Manifest
from haptera.modules import BUNDLED, load
from haptera.testing.actual import PartTimes, Values

_NS_PER_S: Final = 1_000_000_000
_SAMPLE: Final = re.compile(r"haptera_(?P<name>\w+)\{(?P<labels>[^}]*)\} (?P<value>\S+)")
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Present:
    """The start of a rehearsal. `missing` are modules of the cluster that are not known here.

    What only those serve stays as it is. `values` are the observed or remembered ones.
    """

    revision: int
    entities: tuple[StoredEntity, ...]
    values: Mapping[EntityId, Values]
    manifests: tuple[Manifest, ...]
    kinds: Mapping[str, Kind]
    pace: PartTimes = field(default_factory=PartTimes)
    missing: tuple[str, ...] = ()


def present_of(
    views: Iterable[EntityView], revision: int, metrics: str = "", besides: Collection[str] = ()
) -> Present:
    """The present, from the list of all entities and the parent's metrics.

    `besides` are modules that the cluster does not have yet, and a change brings.

    Raises:
        HapteraError: a package of this machine brings a kind or module that cannot be used.
    """
    views = [*views]
    modules = {view.name for view in views if view.kind == module.kind.name}
    known, missing = manifests_of(sorted({*modules, *besides}))
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
        revision, tuple(entities), values, tuple(known), KINDS, pace_of(metrics), tuple(missing)
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
