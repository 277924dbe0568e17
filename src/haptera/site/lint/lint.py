"""What of a site can never be as it is desired, with the modules that the site names."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from haptera.core.modules.catalog import Catalog, own_manifests
from haptera.core.state.diff import goal
from haptera.core.state.entity.desired_state import DesiredState
from haptera.core.state.row import EntityState
from haptera.kinds import KINDS
from haptera.lint.goals import Aim, lint_goal, lint_together
from haptera.lint.lint import lint_kinds
from haptera.lint.reachability import Reachability
from haptera.model.answers.finding import REFUSED, Finding, Level, Rule
from haptera.model.changes import Desired
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.parts import Manifest
from haptera.modules import BUNDLED, load
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.witness import CHOICES_MAX, TooLargeError
from haptera.selectors.nodeset import fold
from haptera.site.lint.permits import lint_permits
from haptera.site.lint.settings import lint_settings
from haptera.site.model.site import Site, SiteEntity
from haptera.site.syntax.tree import Place

Rows = Mapping[EntityId, EntityState]
_FIRST: Final = (Rule.UNKNOWABLE_GOAL, Rule.NOT_CHECKED)


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding, and where the site desires what it is about, if it says so anywhere."""

    finding: Finding
    place: Place | None


@dataclass(frozen=True, slots=True)
class _Alike:
    """Entities that differ in nothing which the lint minds, and what is desired of their nodes."""

    entities: tuple[SiteEntity, ...]
    aim: Aim
    node: Aim | None


class _Modules:
    """What can be planned with some modules, for the entities of a site."""

    def __init__(self, manifests: Iterable[Manifest], rows: Rows) -> None:
        self._catalog = Catalog(KINDS, manifests)
        self._rows = rows
        self._prospects: dict[Domain, Reachability] = {}

    def aim(self, entity: EntityId, place: str) -> Aim:
        """The desired values of the entity, with this place."""
        row, node = self._rows[entity], _node_of(entity)
        domain = self._catalog.domain(row, None if node is None else self._rows.get(node))
        if domain not in self._prospects:
            self._prospects[domain] = Reachability(domain)
        # What no step changes and nobody wrote, such as whether files are there, no site mends.
        led = {change.variable for step in domain.steps for change in step.changes}
        aimed = {
            name: value
            for name, value in goal(row, domain).items()
            if name in led or name in row.desired.values
        }
        return Aim(place, entity.kind, aimed, self._prospects[domain])


def lint_site(site: Site, own: Sequence[Manifest] = ()) -> tuple[Placed, ...]:
    """All findings, each once with all that it is about; the gravest first.

    `own` is what the modules of the site's own declare. Where parts are refused, nothing is
    planned, and nothing else is reported.
    """
    loaded = {name: load(name) for name in site.modules}
    bundled = [one.manifest() for one in loaded.values()]
    makers = {name: one.settings for name, one in loaded.items()}
    manifests = [*own, *bundled]
    others = [*bundled, *own_manifests(KINDS)]
    of_parts = [Placed(one, None) for one in lint_kinds(KINDS, own, others)]
    if refused := [one for one in of_parts if one.finding.rule in REFUSED]:
        return tuple(refused)
    rows = {one.entity: _row(one) for one in site.entities}
    more = dict(_with_one_more(site, manifests, rows))
    found = [
        Placed(_of_module(finding, alike, more), _place(finding, alike))
        for alike in _alike(site, _Modules(manifests, rows))
        for finding in _findings(alike.aim, alike.node)
    ]
    of_settings = [Placed(*one) for one in lint_settings(site, manifests, makers)]
    of_permits = [
        Placed(finding, entity.places.get(str(finding.variable)))
        for finding, entity in lint_permits(site, Catalog(KINDS, manifests), rows)
    ]
    return tuple(sorted([*of_parts, *found, *of_permits, *of_settings], key=_order))


def _with_one_more(
    site: Site, manifests: Sequence[Manifest], rows: Rows
) -> Iterator[tuple[str, _Modules]]:
    """By name, each bundled module that the site leaves out and that goes with the others."""
    for name in BUNDLED:
        if name not in site.modules:
            with contextlib.suppress(HapteraError):
                yield name, _Modules([*manifests, load(name).manifest()], rows)


def _row(one: SiteEntity) -> EntityState:
    values = {name: Desired(value, "site") for name, value in one.desired.items()}
    desired = DesiredState(dict(one.attributes), values=values)
    return EntityState(one.entity, KINDS[one.entity.kind], desired)


def _alike(site: Site, modules: _Modules) -> Iterator[_Alike]:
    groups: dict[object, list[SiteEntity]] = {}
    for one in site.entities:
        aim, node = _aims([one.entity], modules)
        if aim.goal:
            # Of nodes it is the class that counts, not the name.
            name = None if node is None else one.entity.name
            key = (one.entity.kind, name, _same(aim), None if node is None else _same(node))
            groups.setdefault(key, []).append(one)
    for some in groups.values():
        yield _Alike(tuple(some), *_aims([one.entity for one in some], modules))


def _aims(entities: Sequence[EntityId], modules: _Modules) -> tuple[Aim, Aim | None]:
    """What is desired of entities that are alike, and of the nodes that they are on."""
    first = entities[0]
    nodes = fold(one.node for one in entities if one.node is not None)
    on = _node_of(first)
    if on is None:
        return modules.aim(first, str(first)), None
    if on == first:
        return modules.aim(first, str(node_id(nodes))), None
    place = EntityId(first.kind, first.name, nodes)
    return modules.aim(first, str(place)), modules.aim(on, str(node_id(nodes)))


def _same(aim: Aim) -> object:
    return aim.prospects, tuple(sorted(aim.goal.items()))


def _node_of(entity: EntityId) -> EntityId | None:
    return None if entity.node is None else node_id(entity.node)


def _findings(aim: Aim, node: Aim | None) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(lint_goal(aim))
        found.extend(() if node is None else lint_together(aim, node))
    except TooLargeError:
        text = (
            f"not everything was checked: it is too large, with more than {CHOICES_MAX:,} choices"
        )
        found.append(Finding(Rule.NOT_CHECKED, aim.place, text, aim.kind))
    return found


def _of_module(finding: Finding, alike: _Alike, more: Mapping[str, _Modules]) -> Finding:
    """The same, but where one more module would do, that this is lacking."""
    entities = [one.entity for one in alike.entities]
    for name, modules in more.items():
        still = _findings(*_aims(entities, modules))
        # As long as the goal cannot be known, nothing else is reported of it.
        if not any(one.variable == finding.variable or one.rule in _FIRST for one in still):
            text = f"{finding.text}; the module {name} would fix that, but is not among the site's"
            fix = f"add {name} under `modules`"
            return replace(finding, rule=Rule.NO_MODULE, text=text, fix=fix)
    return finding


def _place(finding: Finding, alike: _Alike) -> Place | None:
    """Where the first of the entities has the value, or else anything, desired of it."""
    places = alike.entities[0].places
    aimed = (place for name, place in places.items() if name in alike.aim.goal)
    return places.get(finding.variable or "", min(aimed, default=None))


def _order(one: Placed) -> tuple[int, str, str, str]:
    finding = one.finding
    return [*Level].index(finding.level), finding.place, finding.rule, finding.text
