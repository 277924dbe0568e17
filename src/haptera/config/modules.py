"""The `modules` part of a site: which modules there are, and what is desired of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from haptera.config.tree import Branch, Errors, Leaf, Series, Tree, entries_of, plain_data
from haptera.config.values import Entries, Value
from haptera.kinds import module
from haptera.kinds.module import Run
from haptera.model.desirable import check_plain, nearest
from haptera.model.errors import HapteraError
from haptera.model.parts import Context
from haptera.modules import BUNDLED, load

MODULES: Final = ("jobs", "labnode", "service")
_KEYS: Final = ("enabled", "version", "settings")
_RUN: Final = {True: Run.RUNNING, False: Run.STOPPED}


@dataclass(frozen=True, slots=True)
class ModuleSaid:
    """One module: where it runs, and what is desired of it wherever it does."""

    name: str
    context: Context
    desired: Entries


@dataclass(frozen=True, slots=True)
class Modules:
    """All modules of a site, in the order in which they are named."""

    all: tuple[ModuleSaid, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.all)

    def on_nodes(self) -> list[str]:
        """Those that run on each node."""
        return [one.name for one in self.all if one.context is Context.SELF]

    def at_parent(self) -> list[str]:
        """Those that the parent runs."""
        return [one.name for one in self.all if one.context is Context.PARENT]


def read_modules(tree: Tree | None, errors: Errors) -> Modules:
    """The modules of a list, which desires nothing of them, or of a mapping."""
    if tree is None:
        return Modules(tuple(ModuleSaid(name, load(name).context, ()) for name in MODULES))
    found: dict[str, ModuleSaid] = {}
    for name, terms in _entries(tree, errors):
        with errors.at(name.place):
            if name.text not in BUNDLED:
                raise HapteraError(
                    f"there is no module {name.text!r}", do=nearest(name.text, BUNDLED)
                )
            if name.text in found:
                raise HapteraError(f"{name.text} is named twice", do="write it once")
            desired = () if terms is None else read_terms(terms, errors)
            found[name.text] = ModuleSaid(name.text, load(name.text).context, desired)
    return Modules(tuple(found.values()))


def read_terms(tree: Tree, errors: Errors) -> Entries:
    """What is desired of a module, as the variables and plain data of its entities."""
    found: list[tuple[Leaf, Value]] = []
    for key, inner in entries_of(tree, errors):
        with errors.at(inner.place):
            name, value = _datum(key.text, plain_data(inner))
            found.append((Leaf(name, quoted=key.quoted, place=key.place), value))
    return tuple(found)


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
