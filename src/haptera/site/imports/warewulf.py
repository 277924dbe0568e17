"""Warewulf 4's registry of nodes, nodes.conf."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from haptera.kinds import node
from haptera.kinds.host_port import HostPort
from haptera.model.errors import HapteraError, ParseError
from haptera.rest.schemas import SiteFile
from haptera.site.imports.found import FoundNode, FoundSite
from haptera.site.imports.remarks import RemarkSort
from haptera.site.syntax.sources import read_foreign_tree
from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Tree, leaves

IPMI_PORT: Final = "623"

_NODES: Final = "nodes"
_PROFILES: Final = "nodeprofiles"
# In the mapping of a node or of a profile: the profiles that it names.
_NAMED: Final = "profiles"
_FORMAT: Final = "WW_INTERNAL"
_NETWORKS: Final = "network devices"
_ADDRESS: Final = "ipaddr"
_MAC: Final = "hwaddr"
# Of a network: that it is the node's own one, since 4.4 and before; and how they say yes.
_MARKS: Final = ("primary", "default")
_YES: Final = frozenset({"true", "yes", "1"})
_DO: Final = "name Warewulf's nodes.conf"

_Path = tuple[str, ...]
# The scalars of a node or profile by the keys that lead to them: of a list all, else one.
_Fields = dict[_Path, tuple[Leaf, ...]]
# What holds of a node, after all profiles.
_Whole = Mapping[_Path, Leaf]

# The name of a node's own network, since 4.4.
_PRIMARY: Final[_Path] = ("primary network",)
# Older registries have no mapping under `ipmi`.
_BMC: Final[Sequence[_Path]] = (("ipmi", _ADDRESS), ("ipmi ipaddr",))
_BMC_PORT: Final[Sequence[_Path]] = (("ipmi", "port"), ("ipmi port",))


def read_warewulf(source: SiteFile, attributes: Mapping[str, str]) -> FoundSite:
    """The nodes of a registry with their profiles, addresses and BMCs.

    `attributes` names the tag of each of them. Profiles are filled in as Warewulf does: those
    that a profile names come before it, a later one of a list beats an earlier one, and a node's
    own fields beat all.

    Raises:
        HapteraError: the text is no YAML, or no registry.
    """
    errors = Errors()
    tree = read_foreign_tree(source, errors) if source.text.strip() else None
    if not isinstance(tree, Branch):
        raise ParseError("it is not a registry of nodes", where=source.name, do=_DO)
    found = FoundSite()
    found.remarks.take(errors)
    top = {key.text: (key, inner) for key, inner in tree.entries}
    for name, (key, _) in top.items():
        if name not in (_NODES, _PROFILES, _FORMAT):
            found.remarks.leave_out(name, key.place)
    registry = _Registry(found, attributes)
    if _PROFILES in top:
        registry.read_profiles(top[_PROFILES][1])
    if _NODES in top:
        registry.read_nodes(top[_NODES][1])
    registry.close()
    found.compare()
    return found


@dataclass(slots=True)
class _Profile:
    """A profile: those that it names itself, and its fields."""

    place: Place
    names: list[str]
    fields: _Fields


class _Registry:
    """Gathers profiles first, then nodes, each with all that holds of it."""

    def __init__(self, found: FoundSite, attributes: Mapping[str, str]) -> None:
        self._found = found
        self._remarks = found.remarks
        self._attributes = attributes
        self._profiles: dict[str, _Profile] = {}
        # What attributes were made of: a value that another one beats everywhere is not in it.
        self._used = set[Leaf]()

    def read_profiles(self, tree: Tree) -> None:
        for key, inner in self._remarks.entries(tree, _PROFILES):
            self._found.profile(key.text, key.place)
            names, fields = self._read(inner, f"profile {key.text}")
            self._profiles[key.text] = _Profile(key.place, names, fields)

    def read_nodes(self, tree: Tree) -> None:
        for key, inner in self._remarks.entries(tree, _NODES):
            one = self._found.node(key.text, key.place)
            if one is not None:
                names, fields = self._read(inner, "a node")
                self._make(one, self._holding(names, one), fields)

    def close(self) -> None:
        """Remark on what profiles have that stands nowhere."""
        for name, profile in self._profiles.items():
            self._leave_out(profile.fields, f" of profile {name}", None)
            for other in profile.names:
                if other.removeprefix("~") not in self._profiles:
                    what = f"there is no profile {other}"
                    self._remarks.add(RemarkSort.CONFLICT, what, profile.place)

    def _leave_out(self, fields: _Fields, whose: str, node_name: str | None) -> None:
        for path, texts in fields.items():
            for text in texts:
                if text not in self._used:
                    self._remarks.leave_out(" ".join(path) + whose, text.place, node=node_name)

    def _read(self, tree: Tree, what: str) -> tuple[list[str], _Fields]:
        """The profiles that this names, and its fields; of a list, the first value holds."""
        names, fields = list[str](), _Fields()
        for key, inner in self._remarks.entries(tree, what):
            if key.text == _NAMED:
                names = [one.text for one in self._remarks.texts(inner, f"profiles of {what}")]
            else:
                for path, text in leaves(inner):
                    if text.text and not text.empty:
                        at = (key.text, *path)
                        fields[at] = (*fields.get(at, ()), text)
        return names, fields

    def _make(self, one: FoundNode, holding: Sequence[str], own: _Fields) -> None:
        """Give the node what holds of it, and remark on what of its own stands nowhere."""
        self._found.give_profiles(one, holding, one.place)
        layers = (*(self._profiles[name].fields for name in holding), own)
        whole = {path: texts[0] for layer in layers for path, texts in layer.items()}
        self._used |= {whole[path] for path in self._give(one, whole)}
        self._leave_out(own, "", one.name)

    def _give(self, one: FoundNode, whole: _Whole) -> Iterator[_Path]:
        """Give attributes; the paths of the fields that they were made of."""
        for name, tag in self._attributes.items():
            if (path := ("tags", tag)) in whole:
                self._found.attribute(one, name, whole[path].text, whole[path].place)
                yield path
        bmc, port = _first(_BMC, whole), _first(_BMC_PORT, whole)
        if bmc is not None and node.bmc.name not in self._attributes:
            number = IPMI_PORT if port is None else whole[port].text
            bmc_text = _joined(whole[bmc].text, number)
            self._found.attribute(one, node.bmc.name, bmc_text, whole[bmc].place)
            yield from (bmc,) if port is None else (bmc, port)
        network = _own_network(whole)
        for name, key in ((node.address.name, _ADDRESS), (node.mac.name, _MAC)):
            at = (_NETWORKS, network, key)
            if at in whole and name not in self._attributes:
                self._found.attribute(one, name, whole[at].text, whole[at].place)
                yield from (at, *_chose(network, whole))

    def _holding(self, names: Sequence[str], one: FoundNode) -> list[str]:
        """The profiles of a node, each behind those that it names; `~NAME` takes one out again."""
        holding = list[str]()
        for name in self._with_theirs(names):
            if name.startswith("~"):
                holding = [other for other in holding if other != name[1:]]
            elif name in self._profiles:
                holding.append(name)
            else:
                what = f"there is no profile {name}"
                self._remarks.add(RemarkSort.CONFLICT, what, one.place, node=one.name)
        return holding

    def _with_theirs(self, names: Sequence[str]) -> Iterator[str]:
        """The profiles, each once and behind those that it names itself."""
        seen = set[str]()
        waiting = [(name, False) for name in reversed(names)]
        while waiting:
            name, opened = waiting.pop()
            if opened or name.startswith("~"):
                yield name
            elif name not in seen:
                seen.add(name)
                waiting.append((name, True))
                profile = self._profiles.get(name)
                below = () if profile is None else reversed(profile.names)
                waiting += [(other, False) for other in below]


def _joined(address: str, port: str) -> str:
    """The address of a BMC with its port; what is none is left to who remarks on it."""
    try:
        return str(HostPort.parse(address, int(port)))
    except (HapteraError, ValueError):
        return f"{address} {port}"


def _own_network(whole: _Whole) -> str:
    """The primary network, one marked as such, or any: the first one with an address or a card."""
    networks = tuple(dict.fromkeys(path[1] for path in whole if path[0] == _NETWORKS and path[2:]))
    marked = [
        one for mark in _MARKS for one in networks if _says_yes((_NETWORKS, one, mark), whole)
    ]
    primary = [whole[_PRIMARY].text] if _PRIMARY in whole else []
    in_order = (*primary, *marked, "default", *networks)
    having = (one for key in (_ADDRESS, _MAC) for one in in_order if (_NETWORKS, one, key) in whole)
    return next(having, "")


def _chose(network: str, whole: _Whole) -> Iterator[_Path]:
    """The fields that say of a network that it is the node's own one."""
    if _PRIMARY in whole and whole[_PRIMARY].text == network:
        yield _PRIMARY
    marks = ((_NETWORKS, network, mark) for mark in _MARKS)
    yield from (path for path in marks if _says_yes(path, whole))


def _says_yes(path: _Path, whole: _Whole) -> bool:
    return path in whole and whole[path].text.lower() in _YES


def _first(paths: Iterable[_Path], whole: _Whole) -> _Path | None:
    return next((path for path in paths if path in whole), None)
