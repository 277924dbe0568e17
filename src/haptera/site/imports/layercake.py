"""Layercake's state file: the nodes that Kraken is started with."""

import base64
import binascii
import ipaddress
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from haptera.kinds import node
from haptera.kinds.node import Agent, Power
from haptera.model.errors import ParseError
from haptera.rest.schemas import SiteFile
from haptera.site.imports.found import FoundNode, FoundSite
from haptera.site.imports.remarks import Remarks, RemarkSort, is_secret, text_of
from haptera.site.syntax.json_tree import read_json
from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Series, Tree, leaves

# The variable that stands for one of Kraken's; its values by name, or by number as protobuf may.
_WISHES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "physstate": (
        node.power.name,
        {"POWER_OFF": Power.OFF, "1": Power.OFF, "POWER_ON": Power.ON, "2": Power.ON},
    ),
    "runstate": (node.agent.name, {"SYNC": Agent.UP, "2": Agent.UP}),
}
# Kraken's words for states; what else may stand there is not for all eyes.
_STATE: Final = re.compile(r"(?:PHYS|POWER)_[A-Z]+|INIT|ERROR|UNKNOWN|[0-9]")
_CONSUMED: Final = {"id", "nodename", "parentid"}
_IPV4: Final = "IPv4OverEthernet"
# The interface that Layercake's modules look at, where it is there.
_IFACE: Final = "kraken"
_TYPE: Final = "@type"
_DO: Final = 'name a state file: {"nodes": [...]}'


@dataclass(frozen=True, slots=True)
class _Said:
    """One node as the file has it; keys without underscores and in small letters."""

    entries: Mapping[str, tuple[Leaf, Tree]]
    place: Place

    def text(self, key: str) -> str | None:
        return text_of(self.entries[key][1]) if key in self.entries else None

    @property
    def id(self) -> str | None:
        return _uuid(self.text("id"))

    @property
    def parent(self) -> str | None:
        return _uuid(self.text("parentid"))


def read_layercake(source: SiteFile, *, manage: bool) -> FoundSite:
    """The nodes of a state file but the parent's own; with `manage`, what they should be.

    Raises:
        HapteraError: the text is no JSON, or no state file.
    """
    errors = Errors()
    tree = read_json(source.text, source.name, errors, _DO)
    if not isinstance(tree, Branch):
        raise ParseError("it is not a state file", where=str(tree.place), do=_DO)
    found = FoundSite()
    found.remarks.take(errors)
    said = list[_Said]()
    for key, inner in tree.entries:
        if key.text == "nodes":
            said += [_said(one, found.remarks) for one in found.remarks.items(inner, "nodes")]
        else:
            found.remarks.leave_out(key.text, key.place)
    parents = {one.parent for one in said}
    ids = set[str]()
    for one in said:
        if one.id is not None and one.parent is None and one.id in parents:
            found.remarks.add(
                RemarkSort.NOTE, "a node is the parent's own, and left out", one.place
            )
        elif one.id is not None and one.id in ids:
            what = "an id is there twice; the first node was taken"
            found.remarks.add(RemarkSort.TWICE, what, one.place, node=one.text("nodename"))
        else:
            ids.update(filter(None, [one.id]))
            _Reader(found, manage=manage).read(one)
    found.compare()
    return found


def _said(tree: Tree, remarks: Remarks) -> _Said:
    entries = dict[str, tuple[Leaf, Tree]]()
    for key, inner in remarks.entries(tree, "a node"):
        plain = key.text.replace("_", "").lower()
        if plain in entries:
            what = f"{key.text} is {entries[plain][0].text}, which was taken"
            remarks.add(RemarkSort.TWICE, what, key.place)
        else:
            entries[plain] = key, inner
    return _Said(entries, tree.place)


class _Reader:
    def __init__(self, found: FoundSite, *, manage: bool) -> None:
        self._found = found
        self._remarks = found.remarks
        self._manage = manage

    def read(self, said: _Said) -> None:
        name = said.text("nodename") or said.id
        if name is None:
            what = "a node has neither a name nor an id"
            self._remarks.add(RemarkSort.LEFT_OUT, what, said.place)
            return
        if name in self._found.nodes:
            what = "nodes of one name; the first was taken"
            self._remarks.add(RemarkSort.CONFLICT, what, said.place, node=name)
            return
        if name == said.id:
            what = "a node has no name, and is called by its id"
            self._remarks.add(RemarkSort.NOTE, what, said.place, node=name)
        one = self._found.node(name, said.place)
        if one is not None:
            for key, (written, tree) in said.entries.items():
                if key not in _CONSUMED:
                    self._read_key(one, key, written, tree)

    def _read_key(self, one: FoundNode, name: str, key: Leaf, tree: Tree) -> None:
        text = text_of(tree)
        if name in _WISHES and text is not None:
            self._read_wish(one, name, key, text)
        elif name == node.platform.name and text is not None:
            self._found.attribute(one, name, text, tree.place)
        elif name == "extensions":
            for typed in self._remarks.items(tree, name):
                self._read_typed(one, typed)
        elif name == "services":
            for service in self._remarks.items(tree, name):
                called = _member(service, "id") or "without an id"
                self._leave_out(one, f"service {called}", service)
        else:
            self._leave_out(one, key.text, tree)

    def _read_wish(self, one: FoundNode, name: str, key: Leaf, text: str) -> None:
        variable, values = _WISHES[name]
        if text not in values:
            shown = text if _STATE.fullmatch(text) else "of no known state"
            self._remarks.leave_out(f"{key.text} {shown}", key.place, node=one.name)
        elif self._manage:
            one.desired[variable] = values[text]
        else:
            what = f"{key.text} {text} is not desired"
            do = f"--manage desires {variable}: {values[text]}"
            self._remarks.add(RemarkSort.NOTE, what, key.place, node=one.name, do=do)

    def _read_typed(self, one: FoundNode, tree: Tree) -> None:
        called = (_member(tree, _TYPE) or "without a type").rpartition("/")[2]
        if called.rpartition(".")[2] != _IPV4:
            self._leave_out(one, f"extension {called}", tree)
            return
        for key, inner in self._remarks.entries(tree, called):
            if key.text == "ifaces":
                self._read_ifaces(one, inner)
            elif key.text != _TYPE:
                self._leave_out(one, f"{key.text} of extension {called}", inner)

    def _read_ifaces(self, one: FoundNode, tree: Tree) -> None:
        """Take what one interface has: that which Layercake looks at, or the first."""
        if isinstance(tree, Leaf):
            self._remarks.leave_out("interfaces: they are not a list", tree.place, node=one.name)
            return
        named = {key.text: inner for key, inner in tree.entries} if isinstance(tree, Branch) else {}
        ifaces = tree.items if isinstance(tree, Series) else tuple(named.values())
        taken = named.get(_IFACE, next(iter(ifaces), None))
        for iface in ifaces:
            for path, leaf in leaves(iface):
                name, written = _attribute(path, leaf.text) if iface is taken else ("", None)
                if written is not None:
                    self._found.attribute(one, name, written, leaf.place)
                else:
                    self._remarks.leave_out(
                        f"{' '.join(path)} of an interface", leaf.place, node=one.name
                    )

    def _leave_out(self, one: FoundNode, what: str, tree: Tree) -> None:
        """Leave out a whole tree; each secret in it is named."""
        self._remarks.leave_out(what, tree.place, node=one.name)
        for path, leaf in leaves(tree):
            if path and is_secret(path[-1]):
                self._remarks.leave_out(f"{path[-1]} of {what}", leaf.place, node=one.name)


def _member(tree: Tree, name: str) -> str | None:
    entries = tree.entries if isinstance(tree, Branch) else ()
    return next((text_of(inner) for key, inner in entries if key.text == name), None)


def _uuid(text: str | None) -> str | None:
    """An id as people write it; older files have its 16 bytes in Base64."""
    if text is None:
        return None
    data = _bytes(text)
    return str(uuid.UUID(bytes=data)) if len(data) == 16 else text.lower()


def _attribute(path: tuple[str, ...], text: str) -> tuple[str, str | None]:
    """The attribute that a field of an interface becomes, and its value: none if it is none."""
    match path:
        case ("ip", "ip"):
            return node.address.name, _address(text)
        case ("eth", "mac"):
            return node.mac.name, _mac(text)
        case _:
            return "", None


def _mac(text: str) -> str | None:
    """A MAC address as people write it; older files have its bytes in Base64."""
    data = _bytes(text)
    mac = data if len(data) == 6 else node.parse_mac(text)
    return None if mac is None else mac.hex(":")


def _address(text: str) -> str | None:
    """An IP address as people write it; older files have its bytes in Base64."""
    data = _bytes(text)
    try:
        return str(ipaddress.ip_address(data if len(data) in (4, 16) else text))
    except ValueError:
        return None


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
