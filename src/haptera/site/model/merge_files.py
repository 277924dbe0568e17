"""The files of a site as one: what each of them says under a key, put together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from haptera.model.declared.desired_check import nearest
from haptera.model.errors import (
    DuplicateError,
    HapteraError,
    InputError,
    ParseError,
    UnknownNameError,
)
from haptera.rest.schemas import SiteFile
from haptera.site.syntax.sources import INCLUDE, included, read_tree
from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Series, Tree

# Below these stand node-sets: the same one in two files adds to it.
_ADDING: Final = ("nodes", "entities", "desired")

_Said = tuple[Leaf, Tree]


def read_whole(
    sources: Sequence[SiteFile], keys: Sequence[str], errors: Errors
) -> Mapping[str, Tree]:
    """By key, what all files say of it as one tree.

    Raises:
        InputError: some of the files are no site files; the message names each.
    """
    said: dict[str, list[_Said]] = {}
    wrong: list[HapteraError] = []
    for source in sources:
        try:
            for key, tree in _entries(source, errors):
                if key.text in keys:
                    said.setdefault(key.text, []).append((key, tree))
                elif key.text != INCLUDE:
                    do = nearest(key.text, [*keys, INCLUDE])
                    errors.add(UnknownNameError(f"unknown key {key.text}", do=do), key.place)
        except InputError:
            raise  # There are too many errors to go on.
        except HapteraError as error:
            wrong.append(error)
    if wrong:
        raise InputError(wrong)
    return {key: _joined(key, some, errors) for key, some in said.items()}


def _entries(source: SiteFile, errors: Errors) -> Iterable[_Said]:
    tree = read_tree(source, errors)
    if not isinstance(tree, Branch):
        raise ParseError(
            "a site file is a mapping", where=str(tree.place), do="begin with `cluster: NAME`"
        )
    for one in included(tree):
        if not source.included:
            raise HapteraError(
                f"{one.text} was not sent along",
                where=str(one.place),
                do="have `haptera apply` read the files, or send all of them",
            )
    return tree.entries


def _joined(key: str, said: Sequence[_Said], errors: Errors) -> Tree:
    """What several files say: mappings and lists one after the other, one value once."""
    full = [(name, tree) for name, tree in said if not (isinstance(tree, Leaf) and tree.empty)]
    (first_name, first), *others = full or said[:1]
    for name, tree in others:
        if isinstance(tree, Leaf) or type(tree) is not type(first):
            what = f"{key} is given twice, here and at {first_name.place}"
            errors.add(
                DuplicateError(what, do="write it once, or as lists or mappings alike"), name.place
            )
    match first:
        case Branch(place=place):
            branches = [tree.entries for _, tree in full if isinstance(tree, Branch)]
            entries = [entry for some in branches for entry in some]
            return Branch(tuple(entries if key in _ADDING else _once(entries, errors)), place)
        case Series(place=place):
            lists = [tree.items for _, tree in full if isinstance(tree, Series)]
            return Series(tuple(item for some in lists for item in some), place)
        case Leaf():
            return first


def _once(entries: Iterable[_Said], errors: Errors) -> Iterator[_Said]:
    seen: dict[str, Place] = {}
    for key, value in entries:
        if key.text in seen:
            what = f"the key {key.text} is given already, at {seen[key.text]}"
            errors.add(DuplicateError(what, do="write it once"), key.place)
        else:
            seen[key.text] = key.place
            yield key, value
