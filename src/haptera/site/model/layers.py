"""Layers: what `defaults` and profiles say of a node, and of the services and modules on it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from haptera.kinds import module, node, service
from haptera.kinds.extensions import node_kind
from haptera.model.declared.desired_check import nearest
from haptera.model.entity import check_name
from haptera.model.errors import UnknownNameError
from haptera.site.model.modules import Modules, read_terms
from haptera.site.model.values import Entries, read_attributes, read_desired
from haptera.site.syntax.tree import Errors, Tree, entries_of

_KEYS: Final = ("attributes", "desired", "services", "modules")

# The kind and, but for the node itself, the name of what is on a node.
Subject = tuple[str, str | None]
ITSELF: Final[Subject] = (node.kind.name, None)


@dataclass(frozen=True, slots=True)
class Layer:
    """Attributes of a node, and what is desired of each subject on it."""

    attributes: Entries
    desired: Mapping[Subject, Entries]


NOTHING: Final = Layer((), {})


@dataclass(frozen=True, slots=True)
class LayerNames:
    """What a layer may name besides the node: services, and modules."""

    services: Collection[str]
    modules: Modules


def read_profiles(tree: Tree, known: LayerNames, errors: Errors) -> dict[str, Layer]:
    """The profiles by name; what cannot be so is an error even if no node has them."""
    found: dict[str, Layer] = {}
    for key, inner in entries_of(tree, errors):
        with errors.at(key.place):
            check_name(key.text)
        found[key.text] = read_layer(inner, known, errors)
    return found


def read_layer(tree: Tree, known: LayerNames, errors: Errors) -> Layer:
    """One layer."""
    attributes: Entries = ()
    desired: dict[Subject, Entries] = {}
    for key, inner in entries_of(tree, errors):
        match key.text:
            case "attributes":
                attributes = read_attributes(node_kind(), inner, errors)
            case "desired":
                desired[ITSELF] = read_desired(node_kind(), inner, errors)
            case "services":
                desired |= dict(_services(inner, known.services, errors))
            case "modules":
                desired |= dict(_modules(inner, known.modules, errors))
            case _:
                errors.add(
                    UnknownNameError(f"unknown key {key.text}", do=nearest(key.text, _KEYS)),
                    key.place,
                )
    return Layer(attributes, desired)


def _services(
    tree: Tree, services: Collection[str], errors: Errors
) -> Iterator[tuple[Subject, Entries]]:
    for key, inner in entries_of(tree, errors):
        if key.text in services:
            yield (service.kind.name, key.text), read_desired(service.kind, inner, errors)
        else:
            what = f"there is no service {key.text!r}"
            errors.add(UnknownNameError(what, do=nearest(key.text, services)), key.place)


def _modules(tree: Tree, modules: Modules, errors: Errors) -> Iterator[tuple[Subject, Entries]]:
    on_nodes = modules.on_nodes()
    for key, inner in entries_of(tree, errors):
        if key.text in on_nodes:
            yield (module.kind.name, key.text), read_terms(inner, errors)
        else:
            what = f"no module {key.text!r} runs on nodes"
            errors.add(UnknownNameError(what, do=nearest(key.text, on_nodes)), key.place)
