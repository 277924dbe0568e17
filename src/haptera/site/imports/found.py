"""What an import found: nodes with attributes, profiles and wishes, groups of nodes, remarks."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from haptera.kinds import node
from haptera.kinds.host_port import HostPort
from haptera.kinds.node import Agent
from haptera.model.declared.desired_check import check_attribute
from haptera.model.entity import check_name
from haptera.model.errors import HapteraError, LimitError
from haptera.site.imports.remarks import Remarks, RemarkSort
from haptera.site.model.values import PROFILES_MAX
from haptera.site.syntax.tree import Place

NODES_MAX: Final = 200_000
# Each costs a look at its nodes, also where it cannot be in the site.
GROUPS_MAX: Final = 10_000
MEMBERS_MAX: Final = 1_000_000

GROUPS_BYTES_MAX: Final = node.groups.size_bytes_max
# A port that only stands for one that is not there.
_NO_PORT: Final = 1
_ADDRESSES: Final = (node.address.name, node.bmc.name, node.mac.name)


@dataclass(slots=True)
class FoundNode:
    name: str
    place: Place
    attributes: dict[str, str] = field(default_factory=dict)
    desired: dict[str, str] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()


class FoundSite:
    """Takes in what a source says as far as it can stand in a site, and remarks on the rest."""

    def __init__(self) -> None:
        self.nodes: dict[str, FoundNode] = {}
        self.groups: dict[str, tuple[str, ...]] = {}
        self.profiles: dict[str, None] = {}
        self.remarks = Remarks()
        self._group_bytes: dict[str, int] = {}
        self._tried = 0
        self._members = 0

    def node(self, name: str, place: Place) -> FoundNode | None:
        """The node of this name, which may be there already; None where it can be none.

        Raises:
            HapteraError: there are more nodes than a site may have.
        """
        if name not in self.nodes:
            try:
                check_name(name)
            except HapteraError as error:
                self.remarks.add(RemarkSort.LEFT_OUT, f"node {error.what}", place, do=error.do)
                return None
            if len(self.nodes) == NODES_MAX:
                what = f"an import takes {NODES_MAX} nodes at most"
                raise LimitError(what, where=str(place), do="import a part of them")
            self.nodes[name] = FoundNode(name, place)
        return self.nodes[name]

    def attribute(self, one: FoundNode, name: str, text: str, place: Place) -> None:
        """Give a node an attribute, unless it cannot be so, or is another already."""
        held = one.attributes.get(name)
        written = _written(name, text) if name in _ADDRESSES else text
        if written is None:
            what = f"{name}: it is not an address"
            self.remarks.add(RemarkSort.LEFT_OUT, what, place, node=one.name)
        elif held is not None and held != written:
            what = f"{name} is given in two ways; the first was taken"
            self.remarks.add(RemarkSort.CONFLICT, what, place, node=one.name)
        else:
            try:
                one.attributes[name] = check_attribute(node.kind, name, written)
            except HapteraError as error:
                self.remarks.add(RemarkSort.LEFT_OUT, error.what, place, node=one.name, do=error.do)

    def group(self, name: str, members: Iterable[str], place: Place) -> None:
        """Make a group of nodes that are there, unless it cannot be one.

        Raises:
            HapteraError: there are too many groups, or nodes in them.
        """
        inside = tuple(dict.fromkeys(one for one in members if one in self.nodes))
        self._tried += 1
        self._members += len(inside)
        if self._tried > GROUPS_MAX or self._members > MEMBERS_MAX:
            what = f"an import takes {GROUPS_MAX} groups, and {MEMBERS_MAX} nodes in them, at most"
            raise LimitError(what, where=str(place), do="import a part of them")
        size_bytes = len(name.encode()) + len(", ")
        try:
            self._check_group(name, inside, size_bytes)
        except HapteraError as error:
            self.remarks.add(RemarkSort.LEFT_OUT, f"group {name}: {error.what}", place, do=error.do)
            return
        for one in inside:
            self._group_bytes[one] = self._group_bytes.get(one, 0) + size_bytes
        self.groups[name] = inside

    def profile(self, name: str, place: Place) -> bool:
        """Whether there is such a profile from now on; its name may be none."""
        try:
            self.profiles[check_name(name)] = None
        except HapteraError as error:
            self.remarks.add(RemarkSort.LEFT_OUT, f"profile {error.what}", place, do=error.do)
        return name in self.profiles

    def give_profiles(self, one: FoundNode, names: Iterable[str], place: Place) -> None:
        """Give a node its profiles, the last one highest."""
        known = tuple(name for name in names if self.profile(name, place))
        if len(known) > PROFILES_MAX:
            what = f"profiles: a node has {PROFILES_MAX} at most"
            self.remarks.add(RemarkSort.LEFT_OUT, what, place, node=one.name)
        else:
            one.profiles = known

    def desire_agents(self) -> None:
        """Desire of each node what an inventory comes to: that its agent is up."""
        for one in self.nodes.values():
            one.desired[node.agent.name] = Agent.UP

    def compare(self) -> None:
        """Remark on addresses that several nodes have: each should be a node's own."""
        for name in _ADDRESSES:
            having: dict[str, list[FoundNode]] = {}
            for one in self.nodes.values():
                if name in one.attributes:
                    having.setdefault(one.attributes[name], []).append(one)
            for first, *others in having.values():
                for one in others:
                    what = f"{name} is that of {first.name}, too"
                    self.remarks.add(RemarkSort.CONFLICT, what, one.place, node=one.name)

    def _check_group(self, name: str, inside: tuple[str, ...], size_bytes: int) -> None:
        check_name(name)
        if name in self.groups:
            raise HapteraError("another one has this name, and was used")
        if not inside:
            raise HapteraError("it has no nodes")
        if any(self._group_bytes.get(one, 0) + size_bytes > GROUPS_BYTES_MAX for one in inside):
            raise LimitError(
                f"the names of a node's groups take {GROUPS_BYTES_MAX} bytes at most",
                do="take out groups, or give them shorter names",
            )


def _written(name: str, text: str) -> str | None:
    """An address as this attribute has it; only that of a BMC may have a port."""
    if name == node.mac.name:
        mac = node.parse_mac(text)
        return None if mac is None else mac.hex(":")
    try:
        host = HostPort.parse(text, _NO_PORT).host
    except HapteraError:
        return None
    if name == node.bmc.name:
        return text
    return host if text in (host, f"[{host}]") else None
