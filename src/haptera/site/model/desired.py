"""What is desired of each entity of a site: by its own key, by profiles, by what it is of."""

from collections.abc import Iterator, Mapping
from typing import Final

from haptera.kinds import KINDS, group, module, node, service
from haptera.kinds.extensions import node_kind
from haptera.model.declared.desired_check import check_plain, nearest
from haptera.model.declared.schema import Kind
from haptera.model.entity import EntityId, check_name
from haptera.model.errors import Code, HapteraError, UnknownNameError
from haptera.site.model.entities import ON_NODES, OtherEntities, kind_named, not_on_nodes
from haptera.site.model.layers import ITSELF
from haptera.site.model.modules import Modules
from haptera.site.model.nodes import Nodes
from haptera.site.model.values import Entries, Rank, Value, Values, datum, is_template, read_desired
from haptera.site.syntax.tree import Errors, Leaf, Place, Tree, entries_of

Services = Mapping[str, Entries]
Desired = Mapping[EntityId, Mapping[str, str | int]]
Places = Mapping[EntityId, Mapping[str, Place]]


def read_services(tree: Tree, errors: Errors) -> Services:
    """The services by name, with their plain data."""
    found: dict[str, Entries] = {}
    names = [plain.name for plain in service.kind.plain]
    for key, inner in entries_of(tree, errors):
        with errors.at(key.place):
            check_name(key.text)
        data: list[tuple[Leaf, Value]] = []
        for name, value in entries_of(inner, errors):
            plain = service.kind.plain_named(name.text)
            if plain is None:
                what = f"a service has no datum {name.text!r}"
                errors.add(UnknownNameError(what, do=nearest(name.text, names)), name.place)
                continue
            with errors.at(value.place):
                text = datum(name.text, value)
                data.append((name, text if is_template(text) else check_plain(plain, text.text)))
        found[key.text] = tuple(data)
    return found


class DesiredReader:
    """Gathers what is desired, entity by entity."""

    def __init__(
        self,
        nodes: Nodes,
        entities: OtherEntities,
        services: Services,
        modules: Modules,
        errors: Errors,
    ) -> None:
        self._nodes = nodes
        self._entities = entities
        self._services = services
        self._modules = modules
        self._errors = errors
        self._found: dict[EntityId, Values] = {}
        # Where what is the whole cluster's is first named: it may be declared in several files.
        self._keys: dict[EntityId, Place] = {}

    def read(self, tree: Tree) -> Desired:
        """All that is desired, filled: what stands in the tree, and what layers and data say."""
        for key, inner in entries_of(tree, self._errors):
            with self._errors.at(key.place):
                self._read_key(key, inner)
        self._lay()
        return dict(self._filled())

    def places(self) -> Places:
        """Where the site says each value that holds."""
        return {
            entity: {name: one.place for name, one in values.given.items()}
            for entity, values in self._found.items()
        }

    def _read_key(self, key: Leaf, tree: Tree) -> None:
        found = ON_NODES.fullmatch(key.text)
        if found is None:
            self._read_alone(key, tree)
            return
        kind, name = kind_named(found["kind"] or service.kind.name), check_name(found["name"])
        if kind.name == node.kind.name:
            raise HapteraError(f"{key.text!r} selects nothing", do=_DO, code=Code.SELECTS_NOTHING)
        if kind.of_cluster:
            raise not_on_nodes(kind, name)
        self._check_there(kind, name)
        entries = read_desired(kind, tree, self._errors)
        for one in self._nodes.named(key, found["nodes"]):
            self._give(EntityId(kind.name, name, one.name), entries, Rank.NODE)

    def _read_alone(self, key: Leaf, tree: Tree) -> None:
        """`NODESET`, `node:NODESET`, or what is on no node: `module:NAME`, `image:NAME`."""
        prefix, colon, rest = key.text.partition(":")
        kind = node_kind() if not colon or "@" in prefix else kind_named(prefix)
        if kind is module.kind:
            if rest not in self._modules.at_parent():
                do = nearest(rest, self._modules.at_parent())
                raise UnknownNameError(f"the parent runs no module {rest!r}", do=do)
            entity = EntityId(kind.name, rest, None)
            self._give(entity, read_desired(kind, tree, self._errors), Rank.NODE)
        elif kind.of_cluster:
            entries = read_desired(kind, tree, self._errors)
            for entity in self._entities.of_cluster(kind, key, rest):
                self._keys.setdefault(entity, key.place)
                self._give(entity, entries, Rank.NODE)
        elif kind.name == node.kind.name:
            entries = read_desired(kind, tree, self._errors)
            for one in self._nodes.named(key, rest if kind.name == prefix else key.text):
                self._give(EntityId(kind.name, one.name, one.name), entries, Rank.NODE)
        else:
            raise HapteraError(f"{key.text!r} selects nothing", do=_DO, code=Code.SELECTS_NOTHING)

    def _check_group(self, values: Values) -> None:
        """The nodes that may run its replicas, and the rank that is to lead, each in its place."""
        count = values.given.get(group.replicas.name)
        for name, one in values.given.items():
            with self._errors.at(one.place):
                if name == group.on.name and isinstance(one.value, str):
                    self._nodes.named(Leaf(name, quoted=False, place=one.place), one.value)
                group.check_rank(name, one.value, None if count is None else count.value)

    def _check_there(self, kind: Kind, name: str) -> None:
        known = self._services if kind is service.kind else self._modules.on_nodes()
        if kind in (service.kind, module.kind) and name not in known:
            raise UnknownNameError(f"there is no {kind.name} {name!r}", do=nearest(name, known))

    def _lay(self) -> None:
        """What layers say, and under all of it what services and modules are everywhere."""
        for one in self._nodes.by_name.values():
            for rank, layer in one.layers:
                for (kind, name), entries in layer.desired.items():
                    itself = (kind, name) == ITSELF
                    entity = EntityId(kind, one.name if itself else str(name), one.name)
                    self._give(entity, entries, rank)
        for said in self._modules.all:
            if said.desired:
                on_nodes = said.name in self._modules.on_nodes()
                for where in self._nodes.by_name if on_nodes else (None,):
                    entity = EntityId(module.kind.name, said.name, where)
                    self._give(entity, said.desired, Rank.DATA)
        for entity in [one for one in self._found if one.kind == service.kind.name]:
            self._give(entity, self._services.get(entity.name, ()), Rank.DATA)

    def _give(self, entity: EntityId, entries: Entries, rank: int) -> None:
        values = self._found.setdefault(entity, Values(entity))
        values.give(entries, rank, self._errors)

    def _filled(self) -> Iterator[tuple[EntityId, Mapping[str, str | int]]]:
        for entity, values in self._found.items():
            kind, before = KINDS[entity.kind], len([*self._errors])
            if entity.kind == group.kind.name:
                self._check_group(values)
            if entity.node is None:
                known = self._entities.known_of(entity).known
            else:
                known = self._nodes.by_name[entity.node].attributes.known
            desired = values.desired(kind, known, self._errors)
            # What a value does by itself is said of it, and not of the whole once more.
            if kind.whole is not None and desired and len([*self._errors]) == before:
                with self._errors.at(self._keys[entity]):
                    kind.whole(desired)
            yield entity, desired


_DO: Final = "write NODESET, SERVICE@NODESET, module:NAME@NODESET or image:NAME"
