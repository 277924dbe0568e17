"""Ansible's inventories, as `ansible-inventory --list` writes them."""

from collections.abc import Mapping
from typing import Final

from haptera.kinds import node
from haptera.model.errors import ParseError
from haptera.rest.schemas import SiteFile
from haptera.site.imports.found import FoundNode, FoundSite
from haptera.site.imports.remarks import text_of
from haptera.site.syntax.json_tree import read_json
from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Series, Tree

_META: Final = "_meta"
_ALL: Final = "all"
_UNGROUPED: Final = "ungrouped"
# Values of these names are reported as secrets.
_VAULTED: Final = "vaulted variable"
_VARIABLES: Final = {node.address.name: "ansible_host"}
_EACH_HOST: Final = "import what `ansible-inventory --list` writes without --export"


def read_ansible(source: SiteFile, attributes: Mapping[str, str]) -> FoundSite:
    """The hosts of an inventory as nodes, with its groups.

    `attributes` says which variable each of them is.

    Raises:
        HapteraError: the text is no JSON, or no inventory.
    """
    errors = Errors()
    tree = _plain(read_json(source.text, source.name, errors, _DO))
    if not isinstance(tree, Branch):
        raise ParseError("it is not an inventory", where=str(tree.place), do=_DO)
    found = FoundSite()
    found.remarks.take(errors)
    inventory = _Inventory(found, {**_VARIABLES, **attributes})
    for key, inner in tree.entries:
        if key.text == _META:
            inventory.read_meta(inner)
        else:
            inventory.read_group(key, inner)
    inventory.close()
    return found


class _Inventory:
    """Gathers hosts as they are named, and groups until all are known."""

    def __init__(self, found: FoundSite, attributes: Mapping[str, str]) -> None:
        self._found = found
        self._remarks = found.remarks
        self._attributes = attributes
        self._hosts: dict[str, list[str]] = {}
        self._children: dict[str, list[str]] = {}
        self._places: dict[str, Place] = {}
        self._named: dict[str, Place] = {}

    def read_meta(self, tree: Tree) -> None:
        for key, inner in self._remarks.entries(tree, _META):
            if key.text == "hostvars":
                for host, variables in self._remarks.entries(inner, key.text):
                    one = self._found.node(host.text, host.place)
                    if one is not None:
                        self._read_variables(one, variables)
            elif key.text != "profile":  # which sort of inventory this is
                self._remarks.leave_out(f"{_META}: {key.text}", key.place)

    def read_group(self, name: Leaf, tree: Tree) -> None:
        hosts = self._hosts[name.text] = []
        children = self._children[name.text] = []
        self._places[name.text] = name.place
        if isinstance(tree, Series):  # as inventory scripts may write it
            self._read_hosts(hosts, tree, name.text)
            return
        for key, inner in self._remarks.entries(tree, f"group {name.text}"):
            match key.text:
                case "hosts":
                    self._read_hosts(hosts, inner, name.text)
                case "children":
                    named = self._remarks.texts(inner, f"children of group {name.text}")
                    for one in named:
                        children.append(one.text)
                        self._named.setdefault(one.text, one.place)
                case "vars":
                    for variable, _ in self._remarks.entries(inner, f"vars of group {name.text}"):
                        what = f"variable {variable.text} of group {name.text}"
                        self._remarks.leave_out(what, variable.place, do=_EACH_HOST)
                case other:
                    what = f"{other} of group {name.text}"
                    self._remarks.leave_out(what, key.place)

    def close(self) -> None:
        """Make the groups; all nodes are in the one that says so."""
        for name, place in self._places.items():
            members = list(self._found.nodes) if name == _ALL else self._members(name)
            self._found.group(name, members, place)
        for name, place in self._named.items():
            # Ansible's own name for hosts without a group, also there where there are none.
            if name not in self._places and name != _UNGROUPED:
                self._found.group(name, (), place)
        self._found.compare()

    def _read_hosts(self, hosts: list[str], tree: Tree, group: str) -> None:
        named = self._remarks.texts(tree, f"hosts of group {group}")
        hosts.extend(one.text for one in named if self._found.node(one.text, one.place) is not None)

    def _read_variables(self, one: FoundNode, tree: Tree) -> None:
        for key, inner in self._remarks.entries(tree, "variables of a host"):
            names = [name for name, variable in self._attributes.items() if variable == key.text]
            text = text_of(inner)
            if names and text is not None:
                for name in names:
                    self._found.attribute(one, name, text, inner.place)
            else:
                what = f"{_VAULTED if _is_vaulted(inner) else 'variable'} {key.text}"
                do = f"to make it an attribute: --attribute NAME={key.text}"
                self._remarks.leave_out(what, key.place, node=one.name, do=do)

    def _members(self, name: str) -> list[str]:
        """The hosts of a group and of all below it, each group once."""
        members, seen, waiting = list[str](), {name}, [name]
        while waiting:
            one = waiting.pop()
            members += self._hosts.get(one, ())
            below = [child for child in self._children.get(one, ()) if child not in seen]
            seen.update(below)
            waiting += reversed(below)
        return members


def _plain(tree: Tree) -> Tree:
    """The tree with texts for what `!unsafe` marks as such: {"__ansible_unsafe": TEXT}."""
    match tree:
        case Branch(((Leaf("__ansible_unsafe"), Leaf() as text),)):
            return text
        case Branch(entries, place):
            return Branch(tuple((key, _plain(inner)) for key, inner in entries), place)
        case Series(items, place):
            return Series(tuple(map(_plain, items)), place)
        case Leaf():
            return tree


def _is_vaulted(tree: Tree) -> bool:
    return isinstance(tree, Branch) and any(
        key.text == "__ansible_vault" for key, _ in tree.entries
    )


_DO: Final = "write it by `ansible-inventory --list`"
