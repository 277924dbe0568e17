"""The `modules` part of a site file: which modules there are, and what is desired of each."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from haptera.config.tree import Branch, Errors, Leaf, Series, Tree, plain_data
from haptera.kinds import module
from haptera.kinds.module import Run
from haptera.model.desirable import check_plain, nearest
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.model.parts import Context
from haptera.modules import BUNDLED, load

MODULES: Final = ("jobs", "labnode", "service")
_KEYS: Final = ("enabled", "version", "settings")
_RUN: Final = {True: Run.RUNNING, False: Run.STOPPED}

Wanted = Mapping[str, str | int]


def read_modules(tree: Tree | None, errors: Errors) -> dict[str, Wanted]:
    """The modules by name, with the data that are desired of each; a list desires nothing."""
    if tree is None:
        return {name: {} for name in MODULES}
    found: dict[str, Wanted] = {}
    for name, terms in _entries(tree, errors):
        with errors.at(name.place):
            if name.text not in BUNDLED:
                raise HapteraError(
                    f"there is no module {name.text!r}", do=nearest(name.text, BUNDLED)
                )
            found[name.text] = {} if terms is None else dict(_desired(terms, errors))
    return found


def module_entities(
    wanted: Mapping[str, Wanted], nodes: Iterable[str]
) -> Iterator[tuple[EntityId, Wanted]]:
    """What is desired of modules as entities: of a node's on each node, of the parent's once."""
    for name, values in wanted.items():
        if values:
            on_nodes = load(name).context is Context.SELF
            for node in nodes if on_nodes else (None,):
                yield EntityId(module.kind.name, name, node), values


def _entries(tree: Tree, errors: Errors) -> Iterator[tuple[Leaf, Tree | None]]:
    match tree:
        case Branch(entries):
            yield from entries
        case Series(items):
            for item in items:
                if isinstance(item, Leaf):
                    yield item, None
                else:
                    errors.add("a module's name is due here", item.place, "write `- service`")
        case _:
            errors.add("modules are a list or a mapping", tree.place, "write `modules: [service]`")


def _desired(terms: Tree, errors: Errors) -> Iterator[tuple[str, str | int]]:
    if isinstance(terms, Leaf) and terms.empty:
        return
    if not isinstance(terms, Branch):
        raise HapteraError("a mapping is due here", do="write `enabled: false` below, say")
    for key, tree in terms.entries:
        with errors.at(tree.place):
            yield _datum(key.text, plain_data(tree))


def _datum(name: str, value: object) -> tuple[str, str | int]:
    match name, value:
        case "enabled", bool():
            return module.run.name, _RUN[value]
        case "enabled", _:
            raise HapteraError("enabled is true or false", do="write one of them")
        case "version", _:
            return name, check_plain(module.version, str(value))
        case "settings", dict():
            text = msgspec.json.encode(value, order="deterministic").decode()
            return name, check_plain(module.settings, text)
        case "settings", _:
            raise HapteraError("settings are a mapping", do="write `settings: {NAME: VALUE}`")
        case _:
            raise HapteraError(f"unknown key {name}", do=nearest(name, _KEYS))
