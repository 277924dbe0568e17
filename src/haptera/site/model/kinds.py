"""A site's own kinds and modules; the modules ask an API or run programs."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from haptera.kinds import KINDS
from haptera.kinds.declared.kind import KindTerms, kind_of
from haptera.model.declared.schema import Kind
from haptera.model.errors import HapteraError, ParseError
from haptera.modules.declared.module import made
from haptera.modules.declared.terms import Declaration, DeclaredLook, DeclaredStep, ListTerms
from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Tree, entries_of, plain_data

# The key of the kind in a module's declaration; the site gives it under `kinds`.
KIND_TERMS: Final = "kind_terms"
# As msgspec says where something is wrong: `Expected `int`, got `str` - at `$.looks[...].every_s`.
_AT: Final = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>[^`]*)`)?", re.DOTALL)

_PARTS: Final[Mapping[str, type[Any]]] = {
    "lists": ListTerms,
    "looks": DeclaredLook,
    "steps": DeclaredStep,
}

Terms = TypeVar("Terms")
DeclaredKinds = Mapping[str, KindTerms]


def read_kinds(tree: Tree, errors: Errors) -> DeclaredKinds:
    """The kinds of a site, as they are written; from now on this process knows them.

    It does nothing else than to read this site, or goes by it.
    """
    terms: dict[str, KindTerms] = {}
    kinds: dict[str, Kind] = {}
    for key, inner in entries_of(tree, errors):
        with errors.at(key.place):
            said = _converted(inner, plain_data(inner), KindTerms, errors)
            if said is not None:
                kinds[key.text] = kind_of(key.text, said)
                terms[key.text] = said
    KINDS.declare(kinds)
    return terms


def read_declaration(name: str, tree: Tree, kinds: DeclaredKinds, errors: Errors) -> str:
    """A module's declaration in JSON, with the kind that the site declares for it.

    Raises:
        HapteraError: it cannot be meant.
    """
    data = plain_data(tree)
    for key, inner in entries_of(tree, errors):
        # One by one: the error of a whole mapping does not say which part is wrong.
        for _, terms in entries_of(inner, errors) if key.text in _PARTS else ():
            if _converted(terms, plain_data(terms), _PARTS[key.text], errors) is None:
                return ""
    said = _converted(tree, data, Declaration, errors)
    if said is None or not isinstance(data, dict):
        return ""
    if KIND_TERMS in data:
        raise ParseError("unknown key kind_terms", do="declare the kind under `kinds`")
    whole = msgspec.structs.replace(said, kind_terms=kinds.get(said.kind))
    try:
        made(name, whole)
    except HapteraError as error:
        errors.add(error, _place(tree, (error.where or "").split(".")))
    return msgspec.json.encode(whole, order="deterministic").decode()


def know_kinds(declarations: Iterable[str | None]) -> None:
    """From now on this process knows the kinds that come with what modules declare."""
    found: dict[str, Kind] = {}
    for text in filter(None, declarations):
        said = msgspec.json.decode(text, type=Declaration)
        if said.kind_terms is not None:
            found[said.kind] = kind_of(said.kind, said.kind_terms)
    KINDS.declare(found)


def _converted(tree: Tree, data: object, shape: type[Terms], errors: Errors) -> Terms | None:
    try:
        return msgspec.convert(data, shape)
    except msgspec.ValidationError as error:
        found = _AT.fullmatch(str(error))
        what, path = str(error), ""
        if found is not None:
            what, path = found["what"], found["path"] or ""
        keys = [one for one in re.split(r"[.\[\]]+", path) if one]
        wrong = ParseError(what[:200], do="see docs/reference/declared.md")
        errors.add(wrong, _place(tree, keys))
        return None


def _place(tree: Tree, keys: list[str]) -> Place:
    """The place of a value below a tree, as far down as its keys are there."""
    found: Any = tree
    for key in keys:
        if not isinstance(found, Branch):
            break
        following = [inner for name, inner in found.entries if name.text == key]
        if not following:
            break
        found = following[0]
    assert isinstance(found, Leaf) or hasattr(found, "place")
    place: Place = found.place
    return place
