"""Kinds that a site file declares: their variables, attributes and plain data."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

from haptera.kinds import KINDS
from haptera.kinds.extensions import TAKEN
from haptera.model.declared.meaning import Meaning, looks_like_code
from haptera.model.declared.schema import (
    Applied,
    Attribute,
    Kind,
    Plain,
    Serving,
    Variable,
)
from haptera.model.errors import DeclarationError, DuplicateError, LimitError

# The values of a variable that says whether the plain data are in force.
APPLIED: Final = "applied"
UNKNOWN: Final = "unknown"
NAMES_MAX: Final = 64
TEXT_BYTES: Final = 128
CODE_BYTES: Final = 256
NUMBER_BYTES: Final = 8
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,30}")
_VALUE: Final = re.compile(r"[a-z0-9]([a-z0-9_-]{0,30}[a-z0-9])?")
# What names of kinds stand for besides in selectors and commands.
_TAKEN: Final = TAKEN | {"job", "not", "and", "or", "in", "condition"}


class KindTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One kind: a variable has its values, or is `applied`; `code` is a text that is run or opened.

    Values keep their numbers by their order: append, and leave those that there are.
    """

    variables: dict[str, list[str] | Literal["applied"]]
    attributes: list[str] = []
    desired: dict[str, Literal["text", "number", "code"]] = {}
    serves: dict[str, str] = {}


def kind_of(name: str, terms: KindTerms) -> Kind:
    """The kind of this name, whose entities are the whole cluster's.

    >>> lamp = kind_of("lamp", KindTerms({"light": ["off", "on"]}, serves={"light": "on"}))
    >>> [str(one) for one in lamp.variables[0].values], lamp.serves.service("l1")
    (['unknown', 'off', 'on'], 'lamp:*')

    Raises:
        HapteraError: two things have one name, a name is none, or they take too many bytes.
    """
    _check_names([name], "kind")
    if name in KINDS.bundled or name in _TAKEN:
        raise DuplicateError(f"kind {name} comes with haptera", do="give it another name")
    names = [*terms.variables, *terms.attributes, *terms.desired]
    _check_names(names, "name")
    if len(names) > NAMES_MAX:
        what = f"kind {name} has {len(names)} names, {NAMES_MAX} at most"
        raise LimitError(what, do="leave some out, or declare two kinds")
    variables = tuple(_variables(name, terms))
    return Kind(
        name,
        variables,
        tuple(Attribute(name, one) for one in terms.attributes),
        tuple(_plain(name, *one) for one in terms.desired.items()),
        of_cluster=True,
        count_max=None,
        serves=_serving(name, variables, terms.serves),
    )


def _variables(kind: str, terms: KindTerms) -> Iterator[Variable[Any]]:
    for name, values in terms.variables.items():
        numbers: Mapping[Any, int]
        if values == APPLIED:
            numbers = {one: number for number, one in enumerate(Applied)}
            yield Variable(kind, name, Applied, numbers)
            continue
        for value in values:
            if _VALUE.fullmatch(value) is None or value == UNKNOWN:
                do = "use lower-case letters, digits, _ and -; unknown is there in any case"
                raise DeclarationError(f"{value[:80]!r} is no value of {kind}.{name}", do=do)
        if len(set(values)) != len(values) or not values:
            do = "name each value once"
            raise DuplicateError(f"{kind}.{name} has no values, or one twice", do=do)
        named = {f"V{at}": value for at, value in enumerate([UNKNOWN, *values])}
        of: type[StrEnum] = StrEnum(name, named)  # type: ignore[misc]  # made while we run
        yield Variable(kind, name, of, {one: number for number, one in enumerate(of)})


def _plain(kind: str, name: str, of: str) -> Plain:
    if of == "number":
        return Plain(kind, name, int, NUMBER_BYTES)
    if of == "code":
        return Plain(kind, name, str, CODE_BYTES, meaning=Meaning.COMMAND)
    if looks_like_code(name):
        do = f"write `{name}: code` if it is run or opened, or give it another name"
        raise DeclarationError(f"scope write may change {kind}.{name}, a text", do=do)
    return Plain(kind, name, str, TEXT_BYTES)


def _serving(
    kind: str, variables: tuple[Variable[Any], ...], serves: Mapping[str, str]
) -> Serving | None:
    if not serves:
        return None
    by_name = {one.name: one for one in variables}
    (name, value), *more = serves.items()
    if more or name not in by_name or not by_name[name].has(value):
        do = "write one variable of it, and the value that it has while it serves"
        raise DeclarationError(f"kind {kind} cannot serve by {dict(serves)}", do=do)
    return Serving(by_name[name], value, lambda _: f"{kind}:*")


def _check_names(names: list[str], what: str) -> None:
    for name in names:
        if _NAME.fullmatch(name) is None:
            do = "begin with a lower-case letter, then such letters, digits and _"
            raise DeclarationError(f"{name[:80]!r} is no {what}", do=do)
