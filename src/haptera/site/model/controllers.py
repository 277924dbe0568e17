"""The `controllers` part of a site file: which controllers of its own a cluster has."""

from collections.abc import Collection
from typing import Final

import msgspec

from haptera.controllers import BUNDLED as BUNDLED_CONTROLLERS
from haptera.kinds.brought import CONTROLLERS_GROUP, brought, the_one
from haptera.model.declared.desired_check import nearest
from haptera.model.entity import check_name
from haptera.model.errors import Code, HapteraError, LimitError, ParseError, UnknownNameError
from haptera.modules import BUNDLED
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.site.model.modules import check_place
from haptera.site.syntax.tree import Branch, Errors, Tree, entries_of, plain_data

SETTINGS_BYTES_MAX: Final = 16_384
_KEYS = ("place", "settings")
# Each with the module whose kinds it is for.
_BUNDLED: Final = {"groups": ("replica", "haptera.controllers.groups:controller")}


def read_controllers(
    tree: Tree, folder: str, modules: Collection[str], errors: Errors
) -> tuple[ControllerPlace, ...]:
    """The controllers, each with its name, its place and its settings; `folder` is the site's.

    Those that come with haptera are among them, for the modules that the site has.
    """
    found = [
        ControllerPlace(name, place, folder, {})
        for name, (module, place) in _BUNDLED.items()
        if module in modules
    ]
    for key, inner in entries_of(tree, errors):
        with errors.at(key.place):
            if check_name(key.text) in {*BUNDLED, *modules}:
                raise HapteraError(f"{key.text} is a module", do="take another name")
            if key.text in _BUNDLED:
                raise HapteraError(f"{key.text} comes with haptera", do="take another name")
        with errors.at(inner.place):
            found.append(_controller(key.text, inner, folder, errors))
    return tuple(found)


def _controller(name: str, tree: Tree, folder: str, errors: Errors) -> ControllerPlace:
    if not isinstance(tree, Branch):
        raise ParseError("a mapping is expected here", do="write `place: MODULE:ATTRIBUTE` below")
    given = {key.text: value for key, value in tree.entries}
    for key, _ in tree.entries:
        if key.text not in _KEYS:
            errors.add(
                UnknownNameError(f"unknown key {key.text}", do=nearest(key.text, _KEYS)), key.place
            )
    place = ""
    if "place" in given:
        with errors.at(given["place"].place):
            place = check_place(given["place"])
    elif name in BUNDLED_CONTROLLERS:
        place = BUNDLED_CONTROLLERS[name]
    elif name in (packaged := brought(CONTROLLERS_GROUP)):
        place = the_one(packaged[name]).place
    else:
        raise HapteraError(
            "its place is not given", do="write `place: MODULE:ATTRIBUTE`", code=Code.MISSING
        )
    settings = given.get("settings", Branch((), tree.place))
    if not isinstance(settings, Branch):
        raise ParseError("settings are a mapping", do="write `settings: {NAME: VALUE}`")
    values = {key.text: plain_data(value) for key, value in settings.entries}
    if len(msgspec.json.encode(values)) > SETTINGS_BYTES_MAX:
        raise LimitError(
            f"settings take {SETTINGS_BYTES_MAX} bytes at most", do="name a file in them"
        )
    return ControllerPlace(name, place, folder, values)
