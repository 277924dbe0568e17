"""The `lab` part of a site: checked here, where each key has a place, and read by a lab."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from haptera.lab.settings import LabSettings
from haptera.model.declared.desired_check import nearest
from haptera.model.errors import HapteraError, UnknownNameError
from haptera.selectors.nodeset import fold
from haptera.site.model.nodes import Nodes
from haptera.site.syntax.tree import Errors, Tree, entries_of, plain_data

# Below these stand node-sets.
_BY_NODES: Final = ("refuse", "bmc")
_PATH: Final = re.compile(r" - at `[^`]*`$")


def read_lab(tree: Tree, nodes: Nodes, errors: Errors) -> Mapping[str, object]:
    """The lab's settings, as data; its node-sets name nodes only, no groups or patterns."""
    found: dict[str, object] = {}
    for key, inner in entries_of(tree, errors):
        if key.text not in LabSettings.__struct_fields__:
            do = nearest(key.text, LabSettings.__struct_fields__)
            errors.add(UnknownNameError(f"a lab has no {key.text!r}", do=do), key.place)
        elif key.text not in _BY_NODES:
            with errors.at(inner.place):
                found[key.text] = _checked(key.text, plain_data(inner))
        else:
            found[key.text] = _by_nodes(key.text, inner, nodes, errors)
    return found


def _by_nodes(name: str, tree: Tree, nodes: Nodes, errors: Errors) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for key, inner in entries_of(tree, errors):
        named = nodes.named(key, key.text)
        with errors.at(inner.place):
            data = plain_data(inner)
            _checked(name, {"": data})
            if named:
                text = fold(one.name for one in named)
                found.pop(text, None)  # The later stands later.
                found[text] = data
    return found


def _checked(name: str, data: object) -> object:
    try:
        # Numbers may be texts here, as everywhere.
        msgspec.convert({name: data}, LabSettings, strict=False)
    except msgspec.ValidationError as error:
        what = _PATH.sub("", str(error))
        what, do = what[:1].lower() + what[1:], "see docs/reference/site-file.md, The lab"
        raise HapteraError(what, do=do) from None
    return data
