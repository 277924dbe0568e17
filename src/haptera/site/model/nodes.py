"""The nodes of a site: which there are, their attributes, and the layers that each of them has."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from haptera.kinds import node
from haptera.kinds.extensions import node_kind
from haptera.model.declared.desired_check import check_attribute, did_you_mean, nearest
from haptera.model.declared.uniqueness import Unique
from haptera.model.entity import check_name, node_id
from haptera.model.errors import DuplicateError, HapteraError, LimitError, UnknownNameError
from haptera.model.parts import Manifest
from haptera.selectors.names import ALL_NODES, GroupName, nearest_name, no_groups
from haptera.selectors.names import Groups as GroupsOf
from haptera.selectors.nodeset import expand, fold
from haptera.site.model.attributes import Attributes
from haptera.site.model.groups import Groups, check_expanded, not_yet
from haptera.site.model.layers import Layer
from haptera.site.model.values import PROFILES_MAX, Entries, Rank, Values, read_attributes
from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Series, Tree, entries_of, leaf

PROFILES: Final = "profiles"

_NUMBER = re.compile(r"([A-Za-z]*)[-_.]?([0-9]+)")
_ITEMS: Final = re.compile(r"[,\s]+")


def dimensions(name: str) -> dict[str, str]:
    """What the numbers in a name are called: by their order, and by the letters before them.

    >>> dimensions("rack1n02")
    {'1': '1', '2': '02', 'rack': '1', 'n': '02'}

    Letters that stand before two of them name neither.
    """
    numbers = [number for _, number in _NUMBER.findall(name)]
    by_order = {str(at): number for at, number in enumerate(numbers, start=1)}
    return by_order | dict(zip(holes(name), numbers, strict=True))


def holes(name: str) -> list[str]:
    """The name of each number in a node's name: the letters before it, or else its order.

    >>> holes("rack1n02"), holes("n1n2-3")
    (['rack', 'n'], ['1', '2', '3'])
    """
    letters = [letter for letter, _ in _NUMBER.findall(name)]
    return [
        one if one and letters.count(one) == 1 else str(at)
        for at, one in enumerate(letters, start=1)
    ]


@dataclass(slots=True)
class Node:
    """One node, with its attributes and the layers that it has."""

    name: str
    attributes: Attributes
    profiles: tuple[Leaf, ...] | None = None
    layers: list[tuple[int, Layer]] = field(default_factory=list)


class Nodes:
    """All nodes of a site by name, and the node-sets that name some of them."""

    def __init__(
        self, groups: Mapping[str, Leaf], constants: Mapping[str, str], errors: Errors
    ) -> None:
        self.constants = constants
        self._errors = errors
        self._texts = groups
        self._groups = Groups(groups, not_yet)
        self._expanded = 0
        self.by_name: dict[str, Node] = {}

    def declare(self, tree: Tree) -> None:
        """Declare what stands under `nodes`."""
        for key, inner in entries_of(tree, self._errors):
            profiles, said = self._said(inner)
            for name in self._expand(key, key.text):
                one = self.by_name.get(name)
                if one is None:
                    own = {"name": name, "index": str(len(self.by_name) + 1)}
                    own |= dimensions(name)
                    values = Values(node_id(name))
                    one = Node(name, Attributes(node_kind(), own, self.constants, values))
                    self.by_name[name] = one
                one.attributes.give(said, Rank.NODE, self._errors)
                if profiles is not None:
                    self._give_profiles(one, *profiles)

    def lay(self, defaults: Layer, profiles: Mapping[str, Layer]) -> None:
        """Give each node its layers, and fill its attributes."""
        for one in self.by_name.values():
            one.layers.append((Rank.DEFAULTS, defaults))
            for at, name in enumerate(one.profiles or ()):
                if name.text in profiles:
                    one.layers.append((Rank.PROFILE + at, profiles[name.text]))
                else:
                    what = f"there is no profile {name.text!r}"
                    self._errors.add(
                        UnknownNameError(what, do=nearest(name.text, profiles)), name.place
                    )
            for rank, layer in one.layers:
                one.attributes.give(layer.attributes, rank, self._errors)
            one.attributes.fill(self._errors)
        self._groups = Groups(self._texts, partial(_of_attributes, self.by_name))
        self._join_groups()

    def part(self, tree: Tree) -> None:
        """Give nodes the fault groups that they are said to be in, each with its node-set."""
        for key, inner in entries_of(tree, self._errors):
            with self._errors.at(key.place):
                name = check_attribute(node_kind(), node.fault_group.name, check_name(key.text))
                with self._errors.at(inner.place):
                    said = Leaf(node.fault_group.name, quoted=False, place=inner.place), name
                    for one in self.named(leaf(inner), leaf(inner).text):
                        one.attributes.give((said,), Rank.NODE, self._errors)
                        one.attributes.texts[node.fault_group.name] = name

    def check_unique(self, manifests: Collection[Manifest]) -> None:
        """See that no two nodes have in common what a module reaches only one of them by."""
        names = [one.name for one in node_kind().attributes]
        unique = Unique[Node](manifests, names)
        for one in self.by_name.values():
            for name, value, first in unique.add(one.attributes.texts, one):
                what = f"{name} {value!r} of node:{one.name} is node:{first.name}'s already, at"
                place = first.attributes.given[name].place
                do = "give each node its own, or they are taken for one machine"
                self._errors.add(
                    HapteraError(f"{what} {place}", do=do), one.attributes.given[name].place
                )

    def group_names(self) -> set[str]:
        """All groups that a node is in."""
        texts = (one.attributes.texts.get(node.groups.name, "") for one in self.by_name.values())
        return {*self._texts, *(name for text in texts for name in _ITEMS.split(text) if name)}

    def named(self, key: Leaf, text: str) -> list[Node]:
        """The nodes of a node-set, all of which must be declared."""
        names = self._expand(key, text)
        if missing := [one for one in names if one not in self.by_name]:
            what = f"no such node: {fold(missing)}"
            do = f"{did_you_mean(nearest_name(missing[0], self.by_name))}declare it under `nodes`"
            self._errors.add(UnknownNameError(what, do=do), key.place)
        return [self.by_name[one] for one in names if one in self.by_name]

    def names(self, key: Leaf, text: str) -> tuple[str, ...]:
        """The names of a node-set that names other things than nodes."""
        return self._expand(key, text, no_groups)

    def _join_groups(self) -> None:
        """Give each node the names of its groups, beside those that it is said to have."""
        for group, text in self._texts.items():
            for one in self.named(text, f"@{group}"):
                with self._errors.at(text.place):
                    names = _ITEMS.split(one.attributes.texts.get(node.groups.name, ""))
                    joined = ", ".join(dict.fromkeys([*filter(None, names), group]))
                    check_attribute(node_kind(), node.groups.name, joined)
                    one.attributes.texts[node.groups.name] = joined

    def _expand(self, key: Leaf, text: str, groups: GroupsOf | None = None) -> tuple[str, ...]:
        with self._errors.at(key.place):
            # Once there are too many, the rest is not even looked at.
            check_expanded(self._expanded)
            found = expand(text, groups or self._groups)
            self._expanded += len(found)
            check_expanded(self._expanded)
            return found
        return ()

    def _said(self, tree: Tree) -> tuple[tuple[tuple[Leaf, ...], Place] | None, Entries]:
        """The profiles that a mapping under `nodes` names, with their place, and the rest."""
        profiles: tuple[tuple[Leaf, ...], Place] | None = None
        rest = []
        for key, inner in entries_of(tree, self._errors):
            if key.text != PROFILES:
                rest.append((key, inner))
                continue
            with self._errors.at(inner.place):
                names = inner.items if isinstance(inner, Series) else (inner,)
                profiles = tuple(map(leaf, names)), key.place
                _check_profiles(profiles[0])
        return profiles, read_attributes(node_kind(), Branch(tuple(rest), tree.place), self._errors)

    def _give_profiles(self, one: Node, profiles: tuple[Leaf, ...], place: Place) -> None:
        if one.profiles is None:
            one.profiles = profiles
        else:
            what = f"profiles of node:{one.name} are given twice, here and at"
            first = one.profiles[0].place if one.profiles else "an empty list"
            self._errors.add(DuplicateError(f"{what} {first}", do="put them into one list"), place)


def _of_attributes(by_name: Mapping[str, Node], group: GroupName) -> Collection[str]:
    """All nodes, or those with such an attribute."""
    if group == ALL_NODES:
        return by_name
    source = group.source or ""
    if node_kind().attribute(source) is None:
        do = nearest(source, [one.name for one in node_kind().attributes])
        raise UnknownNameError(f"no attribute of nodes is called {source!r}", do=do)
    return [one.name for one in by_name.values() if one.attributes.texts.get(source) == group.name]


def _check_profiles(names: Collection[Leaf]) -> None:
    texts = [one.text for one in names]
    if twice := next((one for one in texts if texts.count(one) > 1), None):
        raise DuplicateError(f"the profile {twice} is there twice", do="write it once")
    if len(texts) > PROFILES_MAX:
        raise LimitError(f"a node has {PROFILES_MAX} profiles at most", do="join some")
