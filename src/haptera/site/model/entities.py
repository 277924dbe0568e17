"""The entities that a site declares besides nodes, with their attributes."""

import re
from typing import Final

from haptera.kinds import KINDS, module, node, service
from haptera.kinds.rules import budget, policy
from haptera.model.declared.desired_check import nearest
from haptera.model.declared.schema import Kind
from haptera.model.entity import EntityId, check_name
from haptera.model.errors import Code, HapteraError, UnknownNameError
from haptera.site.model.attributes import Attributes
from haptera.site.model.nodes import Nodes, dimensions
from haptera.site.model.values import Rank, Values, read_attributes
from haptera.site.syntax.tree import Errors, Leaf, Tree, entries_of

# `SERVICE@NODESET`, `KIND:NAME@NODESET`; a node-set may have an @ of its own.
ON_NODES: Final = re.compile(r"(?:(?P<kind>[^:@,]*):)?(?P<name>[A-Za-z0-9._-]+)@(?P<nodes>.+)")
_DO: Final = "write KIND:NAMES, or KIND:NAME@NODESET for what is on nodes"
_NOTHING: Final = Code.SELECTS_NOTHING
# Kinds that a site declares elsewhere, and where.
_ELSEWHERE: Final = {
    node.kind.name: "nodes",
    service.kind.name: "desired",
    module.kind.name: "modules",
    policy.kind.name: "policies",
    budget.kind.name: "budgets",
}


class OtherEntities:
    """The entities of the section `entities`, and the template values of any that is no node."""

    def __init__(self, nodes: Nodes, errors: Errors) -> None:
        self._nodes = nodes
        self._errors = errors
        self.by_id: dict[EntityId, Attributes] = {}
        self._others: dict[EntityId, Attributes] = {}

    def read(self, tree: Tree) -> None:
        """Declare the entities of the section, with their attributes filled."""
        for key, inner in entries_of(tree, self._errors):
            with self._errors.at(key.place):
                self._read_key(key, inner)
        for one in self.by_id.values():
            one.fill(self._errors)

    def known_of(self, entity: EntityId) -> Attributes:
        """The template values of an entity that is on no node."""
        one = self.by_id.get(entity) or self._others.get(entity)
        if one is None:
            one = self._others[entity] = self._made(entity)
        return one

    def _read_key(self, key: Leaf, inner: Tree) -> None:
        found = ON_NODES.fullmatch(key.text)
        if found is not None:
            kind, name = kind_named(found["kind"] or service.kind.name), check_name(found["name"])
            if kind.of_cluster:
                raise not_on_nodes(kind, name)
            _check_declarable(kind, key.text)
            where = [one.name for one in self._nodes.named(key, found["nodes"])]
            entities = [EntityId(kind.name, name, one) for one in where]
        else:
            prefix, colon, names = key.text.partition(":")
            kind = kind_named(prefix) if colon else node.kind
            _check_declarable(kind, key.text)
            if not kind.of_cluster:
                raise HapteraError(f"{key.text!r} selects nothing", do=_DO, code=_NOTHING)
            entities = self.of_cluster(kind, key, names)
        said = read_attributes(kind, inner, self._errors)
        for entity in entities:
            one = self.by_id.setdefault(entity, self._made(entity))
            one.give(said, Rank.NODE, self._errors)

    def of_cluster(self, kind: Kind, key: Leaf, names: str) -> list[EntityId]:
        """The entities of a kind of the cluster, one for each name of a node-set."""
        return [EntityId(kind.name, name, None) for name in self._nodes.names(key, names)]

    def _made(self, entity: EntityId) -> Attributes:
        if entity.node is None:
            own = {"name": entity.name} | dimensions(entity.name)
            constants = self._nodes.constants
        else:
            on = self._nodes.by_name[entity.node].attributes
            own, constants = {**on.own}, {**on.constants, **on.texts}
        return Attributes(KINDS[entity.kind], own, constants, Values(entity))


def kind_named(name: str) -> Kind:
    """The kind.

    Raises:
        UnknownNameError: there is none of this name.
    """
    kind = KINDS.get(name)
    if kind is None:
        raise UnknownNameError(f"there is no kind {name!r}", do=nearest(name, KINDS))
    return kind


def not_on_nodes(kind: Kind, name: str) -> HapteraError:
    """The error for an entity of the whole cluster that is named with a node."""
    what = f"{name} belongs to the whole cluster, not to a node"
    return HapteraError(what, do=f"write {kind.name}:{name}")


def _check_declarable(kind: Kind, text: str) -> None:
    """See that entities of a kind are declared here, and not by what has its own place."""
    if kind.name in _ELSEWHERE:
        do = f"write it under `{_ELSEWHERE[kind.name]}`"
        raise HapteraError(f"{text!r} is not declared here", do=do)
