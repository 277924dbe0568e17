"""Devices of NetBox, as its API lists them: pages of `/api/dcim/devices/`."""

from collections.abc import Mapping, Sequence
from typing import Final

from haptera.kinds import node
from haptera.model.errors import ParseError
from haptera.model.text import whole_number
from haptera.rest.schemas import SiteFile
from haptera.site.imports.found import FoundNode, FoundSite
from haptera.site.imports.remarks import RemarkSort, text_of
from haptera.site.syntax.json_tree import read_json
from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Series, Tree

# Machines that nobody is to boot: none is there yet, or any more.
ABSENT: Final = frozenset({"decommissioning", "inventory", "planned"})
# What NetBox says of each object for itself.
_OWN: Final = frozenset({"id", "url", "display", "display_url", "created", "last_updated"})
_ADDRESSES: Final = {
    "primary_ip4": node.address.name,
    "primary_ip": node.address.name,
    "oob_ip": node.bmc.name,
}
_DO: Final = "write it by `curl -H 'Authorization: Token …' …/api/dcim/devices/?limit=1000`"


def read_netbox(sources: Sequence[SiteFile], attributes: Mapping[str, str]) -> FoundSite:
    """The devices of all pages as nodes, their roles and tags as groups.

    `attributes` says which custom field each of them is.

    Raises:
        HapteraError: a text is no page, or pages are missing: applied, such a site would take away
            the nodes that are on these.
    """
    found = FoundSite()
    devices = _Devices(found, attributes)
    counted, place = 0, ""
    for source in sources:
        errors = Errors()
        page = read_json(source.text, source.name, errors, _DO)
        found.remarks.take(errors)
        for one in _results(page).items:
            devices.read(one)
        counted, place = max(counted, _count(page)), str(page.place)
    if len(devices.seen) < counted:
        what = f"only {len(devices.seen)} of NetBox's {counted} devices are named here"
        raise ParseError(what, where=place, do="name the files of all pages, by their `next`")
    devices.close()
    return found


class _Devices:
    """Gathers devices, and groups until all are known."""

    def __init__(self, found: FoundSite, attributes: Mapping[str, str]) -> None:
        self._found = found
        self._remarks = found.remarks
        self._attributes = attributes
        self._groups: dict[str, tuple[Place, list[str]]] = {}
        # By their numbers: a page may be named twice, and a device be on two of them.
        self.seen: set[str] = set()

    def read(self, tree: Tree) -> None:
        number = _text(tree, "id") or str(tree.place)
        if number in self.seen:
            return
        self.seen.add(number)
        entries = self._remarks.entries(tree, "a device")
        name = _text(tree, "name")
        if name is None:
            self._remarks.leave_out("a device without a name", tree.place)
            return
        if (status := _text(tree, "status", "value")) in ABSENT:
            self._remarks.leave_out(f"device {name}: it is {status}", tree.place)
            return
        if name in self._found.nodes:
            what = "another device has this name, and was used"
            self._remarks.add(RemarkSort.CONFLICT, what, tree.place, node=name)
            return
        one = self._found.node(name, tree.place)
        if one is not None:
            for key, inner in entries:
                self._read(one, key, inner)

    def close(self) -> None:
        for name, (place, members) in self._groups.items():
            self._found.group(name, members, place)
        self._found.compare()

    def _read(self, one: FoundNode, key: Leaf, inner: Tree) -> None:
        if key.text in _OWN or key.text in ("name", "status") or _is_empty(inner):
            return
        match key.text:
            case "primary_ip4" | "primary_ip" | "oob_ip":
                self._address(one, key, inner)
            case "rack":
                self._attribute(one, node.rack.name, _text(inner, "name"), key)
            case "role" | "device_role":
                self._join(one, _text(inner, "slug"), key)
            case "tags":
                for tag in self._remarks.items(inner, "tags"):
                    self._join(one, _text(tag, "slug"), key)
            case "custom_fields":
                for field, value in self._remarks.entries(inner, "custom_fields"):
                    self._custom(one, field, value)
            case other:
                self._remarks.leave_out(f"field {other}", key.place, node=one.name)

    def _address(self, one: FoundNode, key: Leaf, inner: Tree) -> None:
        name = _ADDRESSES[key.text]
        # Of `primary_ip` there is nothing new where there is one of IPv4.
        if name not in one.attributes:
            text = _text(inner, "address")
            self._attribute(one, name, None if text is None else text.partition("/")[0], key)

    def _attribute(self, one: FoundNode, name: str, text: str | None, key: Leaf) -> None:
        if text is None:
            self._remarks.leave_out(f"field {key.text}", key.place, node=one.name)
        else:
            self._found.attribute(one, name, text, key.place)

    def _join(self, one: FoundNode, group: str | None, key: Leaf) -> None:
        if group is None:
            self._remarks.leave_out(f"field {key.text}", key.place, node=one.name)
        else:
            self._groups.setdefault(group, (key.place, []))[1].append(one.name)

    def _custom(self, one: FoundNode, field: Leaf, value: Tree) -> None:
        names = [name for name, custom in self._attributes.items() if custom == field.text]
        text = text_of(value)
        if names and text is not None:
            for name in names:
                self._found.attribute(one, name, text, field.place)
        elif not _is_empty(value):
            do = f"to make it an attribute: --attribute NAME={field.text}"
            what = f"custom field {field.text}"
            self._remarks.leave_out(what, field.place, node=one.name, do=do)


def _results(tree: Tree) -> Series:
    results = _entry(tree, "results")
    if not isinstance(results, Series):
        raise ParseError("it is no page of devices", where=str(tree.place), do=_DO)
    return results


def _count(page: Tree) -> int:
    """The number of devices on all pages; without it, a missing one is not noticed."""
    count = whole_number(_text(page, "count") or "")
    if count is None:
        raise ParseError("the page has no count of devices", where=str(page.place), do=_DO)
    return count


def _entry(tree: Tree | None, name: str) -> Tree | None:
    """The entry of this name in a mapping; None where there is none, or the tree is no mapping."""
    entries = tree.entries if isinstance(tree, Branch) else ()
    return next((inner for key, inner in entries if key.text == name), None)


def _text(tree: Tree | None, *path: str) -> str | None:
    for name in path:
        tree = _entry(tree, name)
    return None if tree is None else text_of(tree)


def _is_empty(tree: Tree) -> bool:
    match tree:
        case Leaf():
            return tree.empty or not tree.text
        case Series():
            return not tree.items
        case Branch():
            return not tree.entries
