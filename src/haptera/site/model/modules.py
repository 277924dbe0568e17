"""The `modules` part of a site: which modules there are, and what is desired of each."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from haptera.kinds import module
from haptera.kinds.brought import MODULES_GROUP, brought, the_one
from haptera.kinds.module import ModuleRun
from haptera.model.declared.desired_check import check_plain, nearest
from haptera.model.entity import check_name
from haptera.model.errors import (
    DuplicateError,
    HapteraError,
    LimitError,
    ParseError,
    UnknownNameError,
)
from haptera.model.parts import Context
from haptera.modules import BUNDLED, load
from haptera.runtime.processes.places import ModulePlace
from haptera.site.model.kinds import DeclaredKinds, read_declaration
from haptera.site.model.values import Entries, Value
from haptera.site.syntax.tree import (
    Branch,
    Errors,
    Leaf,
    Place,
    Series,
    Tree,
    entries_of,
    leaf,
    plain_data,
)

MODULES: Final = ("jobs", "labnode", "service")
_KEYS: Final = ("enabled", "version", "settings")
# What a module of one's own says besides: where it is, if no package brings it, and where it runs.
_PLACE_KEYS: Final = ("place", "exec", "declares", "context")
WORDS_MAX: Final = 64
PLACE: Final = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*"
)
_RUN: Final = {True: ModuleRun.RUNNING, False: ModuleRun.STOPPED}


NO_KINDS: Final[DeclaredKinds] = {}


@dataclass(frozen=True, slots=True)
class ModuleSaid:
    """One module: where it runs, and what is desired of it there; one of one's own has a place."""

    name: str
    context: Context
    desired: Entries
    place: ModulePlace | None = None


@dataclass(frozen=True, slots=True)
class Modules:
    """All modules of a site, in the order in which they are named."""

    all: tuple[ModuleSaid, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.all)

    @property
    def bundled(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.all if one.place is None)

    @property
    def own(self) -> tuple[ModulePlace, ...]:
        return tuple(one.place for one in self.all if one.place is not None)

    def on_nodes(self) -> list[str]:
        """Those that run on each node."""
        return [one.name for one in self.all if one.context is Context.SELF]

    def at_parent(self) -> list[str]:
        """Those that the parent runs."""
        return [one.name for one in self.all if one.context is Context.PARENT]


def read_modules(
    tree: Tree | None, folder: str, errors: Errors, kinds: DeclaredKinds = NO_KINDS
) -> Modules:
    """The modules of a list, which desires nothing of them, or of a mapping.

    `folder` is the site's: modules of one's own may lie in it. `kinds` are those that the site
    declares.
    """
    if tree is None:
        return Modules(tuple(ModuleSaid(name, load(name).context, ()) for name in MODULES))
    found: dict[str, ModuleSaid] = {}
    for name, terms in _entries(tree, errors):
        with errors.at(name.place):
            if check_name(name.text) in found:
                raise DuplicateError(f"{name.text} is named twice", do="write it once")
            found[name.text] = _module(name, terms, (folder, kinds), errors)
    return Modules(tuple(found.values()))


def _module(
    name: Leaf, tree: Tree | None, beside: tuple[str, DeclaredKinds], errors: Errors
) -> ModuleSaid:
    entries = () if tree is None else entries_of(tree, errors)
    where = {key.text: inner for key, inner in entries if key.text in _PLACE_KEYS}
    rest = Branch(
        tuple(one for one in entries if one[0].text not in _PLACE_KEYS),
        name.place if tree is None else tree.place,
    )
    desired = read_terms(rest, errors)
    if name.text in BUNDLED:
        if where:
            raise HapteraError(f"{name.text} comes with haptera", do="take another name")
        return ModuleSaid(name.text, load(name.text).context, desired)
    place = _place(name, where, beside, errors)
    return ModuleSaid(name.text, place.context, desired, place)


def _place(
    name: Leaf, where: Mapping[str, Tree], beside: tuple[str, DeclaredKinds], errors: Errors
) -> ModulePlace:
    """Where a module of one's own is, and where it runs."""
    folder, _ = beside
    told = None if where.keys() & {"place", "exec", "declares"} else _brought(name.text)
    context = Context.SELF
    if "context" not in where:
        do = "write `context: parent`, or `context: self`: on each node"
        errors.add(HapteraError(f"the context of {name.text} is missing", do=do), name.place)
    else:
        with errors.at(where["context"].place):
            context = _context(leaf(where["context"]).text)
    if told is not None:
        return ModulePlace(name.text, context, folder, place=told)
    if len(where.keys() & {"place", "exec", "declares"}) != 1:
        raise ParseError(
            f"{name.text} needs either a place or an exec",
            do="write `place: MODULE:ATTRIBUTE`, `exec: [WORD, …]`, or `declares: {…}`",
        )
    if "declares" in where:
        return _declared(name.text, where["declares"], context, beside, errors)
    if "exec" in where:
        with errors.at(where["exec"].place):
            return ModulePlace(name.text, context, folder, command=_words(where["exec"]))
    else:
        with errors.at(where["place"].place):
            return ModulePlace(name.text, context, folder, place=check_place(where["place"]))
    return ModulePlace(name.text, context, folder)


def _declared(
    name: str, tree: Tree, context: Context, beside: tuple[str, DeclaredKinds], errors: Errors
) -> ModulePlace:
    folder, kinds = beside
    if context is not Context.PARENT:
        do = "write `context: parent`"
        errors.add(HapteraError("what a site declares runs at the parent", do=do), tree.place)
    with errors.at(tree.place):
        said = read_declaration(name, tree, kinds, errors)
        return ModulePlace(name, Context.PARENT, folder, declares=said)
    return ModulePlace(name, Context.PARENT, folder)


def _brought(name: str) -> str:
    """Where an installed package has its module of this name."""
    there = brought(MODULES_GROUP)
    if name not in there:
        do = f"{nearest(name, {*BUNDLED, *there})}; one of your own has a `place`, or an `exec`"
        raise UnknownNameError(f"there is no module {name!r}", do=do)
    return the_one(there[name]).place


def _context(text: str) -> Context:
    if text not in list(Context):
        raise HapteraError(f"nothing runs at {text!r}", do=f"write {' or '.join(Context)}")
    return Context(text)


def _words(tree: Tree) -> tuple[str, ...]:
    words = tuple(leaf(one).text for one in (tree.items if isinstance(tree, Series) else (tree,)))
    if not 0 < len(words) <= WORDS_MAX:
        raise LimitError(f"a command has 1 to {WORDS_MAX} words", do="write a script")
    return words


def check_place(tree: Tree) -> str:
    """MODULE:ATTRIBUTE, as Python has it.

    Raises:
        HapteraError: it is none.
    """
    text = leaf(tree).text
    if PLACE.fullmatch(text) is None:
        raise HapteraError(f"{text[:80]!r} is not a place", do="write MODULE:ATTRIBUTE")
    return text


def read_terms(tree: Tree, errors: Errors) -> Entries:
    """What is desired of a module, as the variables and plain data of its entities."""
    found: list[tuple[Leaf, Value]] = []
    for key, inner in entries_of(tree, errors):
        with errors.at(inner.place):
            name, value = _datum(key.text, plain_data(inner))
            found.append((Leaf(name, quoted=key.quoted, place=key.place), value))
    return tuple(found)


def setting_places(tree: Tree) -> Iterator[tuple[Place, Mapping[str, Place]]]:
    """Where each setting stands, by the place of the key `settings` that it is below."""
    for key, inner in tree.entries if isinstance(tree, Branch) else ():
        if key.text == module.settings.name and isinstance(inner, Branch):
            yield key.place, {name.text: name.place for name, _ in inner.entries}
        else:
            yield from setting_places(inner)


def _entries(tree: Tree, errors: Errors) -> Iterator[tuple[Leaf, Tree | None]]:
    match tree:
        case Branch(entries):
            yield from entries
        case Series(items):
            for item in items:
                if isinstance(item, Leaf):
                    yield item, None
                else:
                    errors.add(
                        ParseError("a module's name is expected here", do="write `- service`"),
                        item.place,
                    )
        case _:
            errors.add(
                ParseError("modules are a list or a mapping", do="write `modules: [service]`"),
                tree.place,
            )


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
            raise ParseError("settings are a mapping", do="write `settings: {NAME: VALUE}`")
        case _:
            raise UnknownNameError(f"unknown key {name}", do=nearest(name, _KEYS))
