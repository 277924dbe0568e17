"""What a site's files say: which nodes and services there are, and what they should be.

Nothing of them holds unless all of it can be read; what is wrong is told together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from haptera.api.shapes import SiteFile
from haptera.config.controllers import read_controllers
from haptera.config.modules import module_entities, read_modules
from haptera.config.rules import BUDGETS, POLICIES, read_rules
from haptera.config.sources import gather
from haptera.config.template import fill
from haptera.config.tree import Branch, Errors, Leaf, Place, Tree, leaf, plain_data
from haptera.config.whole import read_whole
from haptera.kinds import KINDS, module, node, service
from haptera.model.desirable import check_attribute, check_desired, check_plain, nearest
from haptera.model.entity import EntityId, check_name, node_id
from haptera.model.errors import HapteraError
from haptera.model.names import Member
from haptera.model.nodeset import fold, members
from haptera.model.schema import Kind
from haptera.runtime.controllers import ControllerPlace

# All node-sets of one file together: what one file may make the parent work through.
EXPANDED_MAX = 500_000

_KEYS = (
    *("cluster", "nodes", "services", "desired", "policies", "budgets"),
    *("modules", "controllers", "lab"),
)


@dataclass(frozen=True, slots=True)
class SiteEntity:
    """One entity as the site wants it."""

    entity: EntityId
    attributes: Mapping[str, str]
    desired: Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Site:
    """A whole site file; `entities` hold the rules last, `lab` is for the lab to read."""

    cluster: str
    entities: tuple[SiteEntity, ...]
    modules: tuple[str, ...]
    lab: Mapping[str, object]
    controllers: tuple[ControllerPlace, ...] = ()


def load_site(path: Path, constants: Mapping[str, str]) -> Site:
    """Read the site of a file with what it includes, or of a folder.

    Raises:
        InputError: some of it cannot be read, or is wrong; all of that is told.
    """
    return parse_site(gather([path]), constants)


def parse_site(sources: Sequence[SiteFile], constants: Mapping[str, str]) -> Site:
    """Read a site; `constants` are known to its templates besides what each node has.

    Raises:
        InputError: the texts are no site files; all that is wrong is told.
    """
    errors = Errors()
    top = read_whole(sources, _KEYS, errors)
    parts = _Parts(errors, top, Place(sources[0].name, 1, 1))
    nodes = parts.nodes(constants)
    services = parts.services()
    desired = parts.desired(nodes, services)
    modules = parts.modules(nodes, desired)
    site = Site(
        cluster=parts.cluster(),
        entities=(*_entities(nodes, desired), *parts.rules(nodes)),
        modules=modules,
        controllers=parts.controllers(constants.get("site", "")),
        lab=parts.lab(),
    )
    errors.check()
    return site


@dataclass(slots=True)
class _Given:
    """Values of one entity, each with the place that gave it."""

    values: dict[str, str | int] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)

    def give(self, name: str, value: str | int, place: Place, whose: EntityId) -> None:
        if name in self.places:
            raise HapteraError(
                f"{name} of {whose} is given twice, here and at {self.places[name]}",
                do="take one of the two out, or make their node-sets differ",
            )
        self.values[name] = value
        self.places[name] = place


@dataclass(slots=True)
class _Node:
    """One declared node; `holes` is what templates about it may name."""

    holes: dict[str, str]
    attributes: _Given = field(default_factory=_Given)


_Nodes = dict[str, _Node]
_Services = Mapping[str, Branch]
_Desired = dict[EntityId, _Given]


class _Parts:
    """Reads each part of a site file; what is wrong goes to `errors`."""

    def __init__(self, errors: Errors, top: Mapping[str, Tree], place: Place) -> None:
        self._errors = errors
        self._top = top
        self._place = place
        self._expanded = 0

    def cluster(self) -> str:
        tree = self._top.get("cluster")
        if tree is None:
            self._errors.add("the cluster has no name", self._place, "write `cluster: NAME`")
            return ""
        with self._errors.at(tree.place):
            return check_name(leaf(tree).text)
        return ""

    def rules(self, nodes: _Nodes) -> Iterator[SiteEntity]:
        """Policies and budgets."""
        for key, form in (("policies", POLICIES), ("budgets", BUDGETS)):
            for entity, values in read_rules(self._top.get(key), form, nodes, self._errors):
                yield SiteEntity(entity, {}, values)

    def modules(self, nodes: _Nodes, desired: _Desired) -> tuple[str, ...]:
        """The modules by name; what is desired of them as entities goes to `desired`."""
        tree = self._top.get("modules")
        wanted = read_modules(tree, self._errors)
        place = self._place if tree is None else tree.place
        for entity, values in module_entities(wanted, nodes):
            given = desired.setdefault(entity, _Given())
            with self._errors.at(place):
                for name, value in values.items():
                    given.give(name, value, place, entity)
        return tuple(wanted)

    def controllers(self, folder: str) -> tuple[ControllerPlace, ...]:
        return read_controllers(self._branch("controllers").entries, folder, self._errors)

    def lab(self) -> Mapping[str, object]:
        branch = self._branch("lab")
        return {key.text: plain_data(tree) for key, tree in branch.entries}

    def nodes(self, constants: Mapping[str, str]) -> _Nodes:
        nodes: _Nodes = {}
        for key, tree in self._branch("nodes").entries:
            attributes = self._entries(tree)
            for member in self._members(key, key.text):
                dimensions = {str(at): text for at, text in enumerate(member.dimensions, start=1)}
                own = {"name": member.name, "n": str(len(nodes) + 1), **dimensions}
                one = nodes.setdefault(member.name, _Node({**constants, **own}))
                for name, value in attributes:
                    with self._errors.at(value.place):
                        filled = fill(leaf(value).text, {**one.holes, **dimensions})
                        text = check_attribute(node.kind, name.text, filled)
                        one.attributes.give(name.text, text, name.place, node_id(member.name))
                        one.holes[name.text] = text
        return nodes

    def services(self) -> _Services:
        found: dict[str, Branch] = {}
        names = [plain.name for plain in service.kind.plain]
        for key, tree in self._branch("services").entries:
            with self._errors.at(key.place):
                check_name(key.text)
            entries = self._entries(tree)
            for name, _ in entries:
                if name.text not in names:
                    what = f"a service has no datum {name.text!r}"
                    self._errors.add(what, name.place, nearest(name.text, names))
            found[key.text] = Branch(tuple(entries), tree.place)
        return found

    def desired(self, nodes: _Nodes, services: _Services) -> _Desired:
        desired: _Desired = {}
        for key, tree in self._branch("desired").entries:
            with self._errors.at(key.place):
                kind, name, pattern = _selector(key.text)
                if pattern is None:
                    entity = EntityId(kind.name, name or "", None)
                    given = desired.setdefault(entity, _Given())
                    self._give(given, kind, entity, self._entries(tree), {})
                    continue
                if kind is service.kind and name not in services:
                    raise HapteraError(
                        f"there is no service {name!r}", do=nearest(name or "", services)
                    )
                names = [member.name for member in self._members(key, pattern)]
                if missing := [one for one in names if one not in nodes]:
                    raise HapteraError(
                        f"no such node: {fold(missing)}", do="declare it under `nodes`"
                    )
                for one in names:
                    entity = EntityId(kind.name, name or one, one)
                    given = desired.setdefault(entity, _Given())
                    self._give(given, kind, entity, self._entries(tree), nodes[one].holes)
        for entity, given in desired.items():
            if entity.node is not None and entity.kind == service.kind.name:
                self._add_data(given, services[entity.name], nodes[entity.node].holes)
        return desired

    def _give(
        self,
        given: _Given,
        kind: Kind,
        entity: EntityId,
        entries: Iterable[tuple[Leaf, Tree]],
        holes: Mapping[str, str],
    ) -> None:
        for name, value in entries:
            with self._errors.at(value.place):
                checked = check_desired(kind, name.text, fill(leaf(value).text, holes))
                given.give(name.text, checked, name.place, entity)

    def _add_data(self, given: _Given, data: Branch, holes: Mapping[str, str]) -> None:
        """A service's data hold wherever nothing more particular was desired."""
        for name, value in data.entries:
            plain = service.kind.plain_named(name.text)
            if plain is not None and name.text not in given.values:
                with self._errors.at(value.place):
                    given.values[name.text] = check_plain(plain, fill(leaf(value).text, holes))

    def _members(self, key: Leaf, pattern: str) -> tuple[Member, ...]:
        with self._errors.at(key.place):
            found = members(pattern)
            self._expanded += len(found)
            if self._expanded > EXPANDED_MAX:
                raise HapteraError(
                    f"the node-sets of this file name more than {EXPANDED_MAX} nodes",
                    do="write fewer of them",
                )
            return found
        return ()

    def _branch(self, key: str) -> Branch:
        tree = self._top.get(key)
        return Branch((), self._place) if tree is None else Branch(self._entries(tree), tree.place)

    def _entries(self, tree: Tree) -> tuple[tuple[Leaf, Tree], ...]:
        """What is in a mapping; nothing written is an empty one."""
        if isinstance(tree, Branch):
            return tree.entries
        if not (isinstance(tree, Leaf) and tree.empty):
            self._errors.add("a mapping is due here", tree.place, "write `NAME: VALUE` below")
        return ()


def _selector(text: str) -> tuple[Kind, str | None, str | None]:
    """Kind, name, node-set of `NODESET`, `SERVICE@NODESET`, `KIND:NAME@NODESET`, `module:NAME`."""
    left, at, right = text.rpartition("@")
    prefix, colon, rest = (left if at else right).rpartition(":")
    kind_name = prefix if colon else "service" if at else "node"
    kind = KINDS.get(kind_name)
    if kind is None:
        raise HapteraError(f"there is no kind {kind_name!r}", do=nearest(kind_name, KINDS))
    if kind is module.kind and not at:
        return kind, check_name(rest), None
    if (kind is node.kind) == bool(at):
        raise HapteraError(f"{text!r} selects nothing", do="write NODESET or SERVICE@NODESET")
    return (kind, check_name(rest), right) if at else (kind, None, rest)


def _entities(nodes: _Nodes, desired: _Desired) -> Iterator[SiteEntity]:
    attributes = {node_id(name): one.attributes.values for name, one in nodes.items()}
    for entity in sorted({*attributes, *desired}):
        given = desired.get(entity, _Given())
        texts = {name: str(value) for name, value in attributes.get(entity, {}).items()}
        yield SiteEntity(entity, texts, given.values)
