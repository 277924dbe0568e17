"""What is in force as a site file: applied, it changes nothing; kept in git, it changes little."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from haptera.kinds import KINDS, module, service
from haptera.model.changes import Desired, StoredEntity
from haptera.model.entity import EntityId
from haptera.model.walltime import duration_text, parse_duration_ms
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.runtime.processes.places import ModulePlace
from haptera.selectors.nodeset import natural
from haptera.site.apply.changes import NODE, SITE_OWNER
from haptera.site.model.kinds import KIND_TERMS
from haptera.site.model.rules import BUDGETS, POLICIES, RuleForm
from haptera.site.syntax.yaml_text import (
    alike,
    braced,
    folded,
    quoted,
    titled,
    yaml_key,
    yaml_value,
)

_FORMS: Final = {"policies": POLICIES, "budgets": BUDGETS}
_RULES: Final = {form.kind.name for form in _FORMS.values()}
_DECLARED: Final = "declared"

# A name, its value, and whose it is; under _DECLARED, only who declared an entity.
_Fact = tuple[str, str | int | None, str]
_Stored = Mapping[EntityId, StoredEntity]


@dataclass(frozen=True, slots=True)
class StartedWith:
    """What a parent started with: bundled modules, one's own, and controllers."""

    modules: Sequence[str]
    own: Sequence[ModulePlace] = ()
    controllers: Sequence[ControllerPlace] = ()


def export(
    cluster: str, places: StartedWith, current: Iterable[StoredEntity], owner: str | None
) -> str:
    """All that is stored, or what one owner has of it; what belongs to others says so."""
    stored = _of_owner({one.entity: one for one in current}, owner)
    entries: dict[str, dict[str, list[_Fact]]] = {"nodes": {}, "entities": {}, "desired": {}}
    for (section, title), some in _columns(stored).items():
        for nodes, facts in alike(some).items():
            for text in folded(nodes):
                entries[section].setdefault(f"{title}{text}", []).extend(facts)
    names = sorted({one.name for one in stored if one.kind == service.kind.name and one.node})
    left_out = sorted(str(one) for one in stored if _section_of(one) is None)
    return "\n".join(
        [
            *(f"# cannot stand in a site file: {one}" for one in left_out),
            f"cluster: {yaml_key(cluster)}",
            *titled("kinds", _kinds(places.own)),
            *titled("nodes", _lines(entries["nodes"])),
            *titled("services", [f"{yaml_key(name)}: {{}}" for name in names]),
            *titled("entities", _lines(entries["entities"])),
            *titled("desired", _lines(entries["desired"])),
            *(line for key, form in _FORMS.items() for line in titled(key, _rules(stored, form))),
            *_modules(places),
            *titled("controllers", map(_controller, places.controllers)),
            "",
        ]
    )


def _of_owner(stored: _Stored, owner: str | None) -> _Stored:
    """What an owner declared or desires something of, with the nodes that it is on."""
    if owner is None:
        return stored
    found: dict[EntityId, StoredEntity] = {}
    for entity, one in stored.items():
        desired = {name: held for name, held in one.desired.items() if held.owner == owner}
        if desired or one.owner == owner:
            found[entity] = StoredEntity(entity, one.attributes, one.owner, desired, one.revision)
    nodes = {entity.node for entity in found}
    for entity, one in stored.items():
        if entity.kind == NODE and entity.name in nodes and entity not in found:
            found[entity] = StoredEntity(entity, one.attributes, one.owner, {}, one.revision)
    return found


def _columns(stored: _Stored) -> dict[tuple[str, str], dict[str, list[_Fact]]]:
    """Facts by section and what stands before the node-set of a key there, for each node."""
    columns: dict[tuple[str, str], dict[str, list[_Fact]]] = {}
    for entity, one in stored.items():
        declared: list[_Fact] = [] if one.owner == SITE_OWNER else [(_DECLARED, None, one.owner)]
        desired = [(name, held.value, held.owner) for name, held in one.desired.items()]
        texts = [(name, text, one.owner) for name, text in one.attributes.items()]
        where = _where(entity)
        if entity.kind == NODE:
            columns.setdefault(("nodes", ""), {})[where] = [*declared, *texts]
            if desired:
                columns.setdefault(("desired", ""), {})[where] = [*desired]
        elif (section := _section_of(entity)) is not None and section not in _FORMS:
            title = _title(entity)
            if texts:
                columns.setdefault(("entities", title), {})[where] = [*declared, *texts]
            if desired or not texts:
                columns.setdefault((section, title), {})[where] = [*declared, *desired]
    return columns


def _section_of(entity: EntityId) -> str | None:
    """Where an entity stands in a site file; None where it cannot."""
    match entity:
        case EntityId(kind, _, None) if kind in _RULES:
            return next(key for key, form in _FORMS.items() if form.kind.name == kind)
        case EntityId(kind, _, _) if kind == module.kind.name or KINDS[kind].of_cluster:
            return "desired"
        case EntityId(_, _, node) if node is not None:
            return "desired"
        case _:
            return None


def _where(entity: EntityId) -> str:
    """The name to fold into a node-set: of the node, or of an entity of the whole cluster."""
    if entity.node is None and KINDS[entity.kind].of_cluster:
        return entity.name
    return entity.node or ""


def _title(entity: EntityId) -> str:
    """The prefix of the node-set."""
    if entity.node is None and KINDS[entity.kind].of_cluster:
        return f"{entity.kind}:"
    prefix = "" if entity.kind == service.kind.name else f"{entity.kind}:"
    return f"{prefix}{entity.name}{'' if entity.node is None else '@'}"


def _lines(entries: Mapping[str, Sequence[_Fact]]) -> Iterator[str]:
    for key in sorted(entries, key=natural):
        values = [(name, value) for name, value, _ in sorted(entries[key]) if value is not None]
        pairs = [f"{name}: {yaml_value(braced(value))}" for name, value in values]
        yield f"{yaml_key(key)}: {{{', '.join(pairs)}}}{_comment(entries[key])}"


def _comment(facts: Iterable[_Fact]) -> str:
    """Whose each fact is that is not the site's."""
    others = sorted({(name, owner) for name, _, owner in facts if owner != SITE_OWNER})
    declared = {owner for name, owner in others if name == _DECLARED}
    named = [f"{name} by {owner}" for name, owner in others if name == _DECLARED]
    named += [f"{name} by {owner}" for name, owner in others if owner not in declared]
    return f"  # {', '.join(named)}" if named else ""


def _rules(stored: _Stored, form: RuleForm) -> Iterator[str]:
    rules = [one for entity, one in stored.items() if entity.kind == form.kind.name]
    for one in sorted(rules, key=lambda one: (_rank(one, form), one.entity)):
        pairs = [
            f"{key}: {yaml_value(duration_text(int(held.value)) if _lasts(read) else held.value)}"
            for key, (plain, read) in form.keys.items()
            if (held := one.desired.get(plain.name)) is not None
        ]
        facts = [(name, held.value, held.owner) for name, held in one.desired.items()]
        yield f"{yaml_key(one.entity.name)}: {{{', '.join(pairs)}}}{_comment(facts)}"


def _lasts(read: object) -> bool:
    return read is parse_duration_ms


def _rank(rule: StoredEntity, form: RuleForm) -> int:
    held: Desired | None = None if form.rank is None else rule.desired.get(form.rank.name)
    return 0 if held is None else int(held.value)


def _modules(places: StartedWith) -> list[str]:
    if not places.own:
        return ["", f"modules: [{', '.join(map(yaml_key, places.modules))}]"]
    bundled = [f"{yaml_key(name)}: {{}}" for name in places.modules]
    return titled("modules", [*bundled, *map(_module, places.own)])


def _module(one: ModulePlace) -> str:
    if one.declares is not None:
        said = {k: v for k, v in msgspec.json.decode(one.declares).items() if k != KIND_TERMS}
        where = f"declares: {_data(said)}"
    elif one.place:
        where = f"place: {yaml_value(one.place)}"
    else:
        where = f"exec: {_data([*one.command])}"
    return f"{yaml_key(one.name)}: {{{where}, context: {one.context}}}"


def _kinds(own: Iterable[ModulePlace]) -> list[str]:
    """The kinds that come with what modules declare."""
    said = [msgspec.json.decode(one.declares) for one in own if one.declares is not None]
    kinds = {one["kind"]: one[KIND_TERMS] for one in said if one.get(KIND_TERMS) is not None}
    return [f"{yaml_key(name)}: {_data(terms)}" for name, terms in sorted(kinds.items())]


def _controller(place: ControllerPlace) -> str:
    settings = "" if not place.settings else f", settings: {_data(place.settings)}"
    return f"{yaml_key(place.name)}: {{place: {yaml_value(place.place)}{settings}}}"


def _data(value: object) -> str:
    match value:
        case dict():
            return f"{{{', '.join(f'{quoted(key)}: {_data(one)}' for key, one in value.items())}}}"
        case list():
            return f"[{', '.join(map(_data, value))}]"
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case str() | int():
            return yaml_value(value)
        case _:
            return str(value)
