"""What a site's files say: which nodes and services there are, and what they should be.

Nothing of them holds unless all of it can be read; all errors come together.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from haptera.kinds import KINDS, module
from haptera.model.declared.told_bytes import check_size
from haptera.model.entity import EntityId, check_name, node_id
from haptera.model.errors import HapteraError
from haptera.modules import load
from haptera.rest.schemas import SiteFile
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.runtime.processes.places import ModulePlace
from haptera.site.model.attributes import Attributes
from haptera.site.model.controllers import read_controllers
from haptera.site.model.desired import Desired, DesiredReader, Places, read_services
from haptera.site.model.entities import OtherEntities
from haptera.site.model.groups import read_groups
from haptera.site.model.kinds import read_kinds
from haptera.site.model.lab import read_lab
from haptera.site.model.layers import LayerNames, read_layer, read_profiles
from haptera.site.model.merge_files import read_whole
from haptera.site.model.modules import read_modules, setting_places
from haptera.site.model.nodes import Nodes
from haptera.site.model.rules import BUDGETS, POLICIES, There, read_rules
from haptera.site.syntax.sources import gather
from haptera.site.syntax.tree import Branch, Errors, Place, Tree, leaf

KEYS: Final = (
    *("cluster", "kinds", "groups", "defaults", "profiles", "nodes", "fault_groups", "services"),
    *("entities", "desired", "policies", "budgets", "modules", "controllers", "lab"),
)
# Where modules are given settings.
_WITH_SETTINGS: Final = ("defaults", "profiles", "modules")


@dataclass(frozen=True, slots=True)
class SiteEntity:
    """One entity as the site wants it, and where it says each value that is desired."""

    entity: EntityId
    attributes: Mapping[str, str]
    desired: Mapping[str, str | int]
    places: Mapping[str, Place] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Site:
    """A whole site; `entities` hold the rules last, `lab` is for the lab to read.

    `modules` are those that come with haptera, `own` the others. `settings` tells where each
    setting of these stands, by the place of the key above it.
    """

    cluster: str
    entities: tuple[SiteEntity, ...]
    modules: tuple[str, ...]
    lab: Mapping[str, object]
    controllers: tuple[ControllerPlace, ...] = ()
    own: tuple[ModulePlace, ...] = ()
    settings: Mapping[Place, Mapping[str, Place]] = field(default_factory=dict, compare=False)

    def place_of(self, entity: SiteEntity, setting: str) -> Place:
        """Where a module is given a setting."""
        place = entity.places[module.settings.name]
        return self.settings.get(place, {}).get(setting, place)


def load_site(path: Path, constants: Mapping[str, str]) -> Site:
    """Read the site of a file with what it includes, or of a folder.

    Raises:
        InputError: some of it cannot be read, or is wrong; the message has all of that.
    """
    return parse_site(gather([path]), constants)


def parse_site(sources: Sequence[SiteFile], constants: Mapping[str, str]) -> Site:
    """Read a site; `constants` are known to its templates besides what each node has.

    Raises:
        InputError: the texts are no site files; the message has all errors.
    """
    errors = Errors()
    place = Place(sources[0].name, 1, 1)
    trees = read_whole(sources, KEYS, errors)

    def said(key: str) -> Tree:
        return trees.get(key, Branch((), place))

    folder = constants.get("site", "")
    modules = read_modules(trees.get("modules"), folder, errors, read_kinds(said("kinds"), errors))
    services = read_services(said("services"), errors)
    known = LayerNames(services, modules)
    nodes = _nodes(said, known, constants, errors)
    nodes.check_unique([load(name).manifest() for name in modules.bundled])
    others = OtherEntities(nodes, errors)
    others.read(said("entities"))
    wanted = DesiredReader(nodes, others, services, modules, errors)
    desired = wanted.read(said("desired"))
    there = There(nodes.by_name, nodes.group_names(), modules.names)
    rules = [
        *read_rules(trees.get("policies"), POLICIES, there, errors),
        *read_rules(trees.get("budgets"), BUDGETS, there, errors),
    ]
    site = Site(
        cluster=_cluster(trees.get("cluster"), place, errors),
        entities=(
            *_entities(_declared(nodes, others), desired, wanted.places(), errors),
            *(SiteEntity(entity, {}, values) for entity, values in rules),
        ),
        modules=modules.bundled,
        own=modules.own,
        controllers=read_controllers(said("controllers"), folder, modules.names, errors),
        lab=read_lab(said("lab"), nodes, errors),
        settings=dict(one for key in _WITH_SETTINGS for one in setting_places(said(key))),
    )
    errors.check()
    return site


def _nodes(
    said: Callable[[str], Tree], known: LayerNames, constants: Mapping[str, str], errors: Errors
) -> Nodes:
    """All nodes, each with its layers and its attributes filled."""
    nodes = Nodes(read_groups(said("groups"), errors), constants, errors)
    nodes.declare(said("nodes"))
    defaults = read_layer(said("defaults"), known, errors)
    nodes.lay(defaults, read_profiles(said("profiles"), known, errors))
    nodes.part(said("fault_groups"))
    return nodes


def _cluster(tree: Tree | None, place: Place, errors: Errors) -> str:
    if tree is None:
        errors.add(HapteraError("the cluster has no name", do="write `cluster: NAME`"), place)
        return ""
    with errors.at(tree.place):
        return check_name(leaf(tree).text)
    return ""


def _declared(nodes: Nodes, others: OtherEntities) -> Mapping[EntityId, Attributes]:
    of_nodes = {node_id(name): one.attributes for name, one in nodes.by_name.items()}
    return {**of_nodes, **others.by_id}


def _entities(
    declared: Mapping[EntityId, Attributes], desired: Desired, places: Places, errors: Errors
) -> Iterator[SiteEntity]:
    for entity in sorted({*declared, *desired}):
        one, values, at = declared.get(entity), desired.get(entity, {}), places.get(entity, {})
        texts = {} if one is None else one.texts
        given = {} if one is None else one.given
        # Where it is said last: what came before had room.
        for last in [*at.values(), *(value.place for value in given.values())][-1:]:
            with errors.at(last):
                check_size(KINDS[entity.kind], entity, values, texts)
        yield SiteEntity(entity, texts, values, at)
