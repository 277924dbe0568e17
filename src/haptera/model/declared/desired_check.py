"""What may be written of an entity: names that its kind has, values that these can take."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from haptera.model.declared.schema import Applied, Kind, Plain, Variable
from haptera.model.errors import HapteraError, LimitError, UnknownNameError
from haptera.model.text import steering

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
# More names than this are listed only where no guess can be made.
LISTED_MAX = 24

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")


def check_desired(kind: Kind, name: str, value: str | int) -> str | int:
    """The value in the type that the kind's variable or plain datum has.

    Raises:
        HapteraError: the kind has no such variable, or the variable no such value.
    """
    variable = find_desirable(kind, name)
    if isinstance(variable, Plain):
        return check_plain(variable, value)
    return _check_value(variable, value, "desired")


def check_read(kind: Kind, name: str, value: str) -> Variable[Any]:
    """The variable of which a value was read.

    Raises:
        HapteraError: the kind has no such variable, or the variable no such value.
    """
    variable = find_desirable(kind, name)
    if isinstance(variable, Plain):
        raise HapteraError(f"{kind.name}.{name} is desired, and not read", do="name a variable")
    _check_value(variable, value, "read")
    return variable


def _check_value(variable: Variable[Any], value: str | int, done: str) -> str:
    name = variable.name
    if variable.values is Applied:
        raise HapteraError(f"{name} is set by haptera itself", do="leave it out")
    if value == variable.unknown:
        raise HapteraError(f"{value} cannot be {done} of {name}", do="leave it out")
    valid = [str(one) for one in variable.values if one is not variable.unknown]
    if value not in valid:
        raise HapteraError(
            f"{variable.path} cannot be {_shown(value)}", do=nearest(str(value), valid)
        )
    return str(value)


def find_desirable(kind: Kind, name: str) -> Variable[Any] | Plain:
    """The variable or plain datum of this name.

    Raises:
        HapteraError: the kind has none.
    """
    named = kind.plain_named(name) or kind.variable(name)
    if named is None:
        names = [*(one.name for one in kind.variables), *(one.name for one in kind.plain)]
        do = kind.former.get(name) or nearest(name, names)
        if kind.attribute(name) is not None:
            do = _of_attribute(kind)
        raise UnknownNameError(f"a {kind.name} has no variable {name!r}", do=do)
    return named


def _of_attribute(kind: Kind) -> str:
    """The way to set an attribute, for an error message."""
    if kind.name == "node":
        return "it is an attribute: declare it, in a site file under `nodes`"
    return (
        "it is an attribute: declare it, in a site file under `entities`, or with"
        " PATCH /v1/entities/ENTITY/attributes"
    )


def check_plain(plain: Plain, value: str | int) -> str | int:
    """The value as a text, or as a number, whichever this plain datum is.

    Raises:
        HapteraError: it is not of this type, too long, has characters that cannot be shown, or is
            none of the values that the datum may have.
    """
    path = f"{plain.kind}.{plain.name}"
    checked: str | int
    if plain.type is int:
        checked = _integer(path, value)
    elif isinstance(value, str):
        checked = _text(path, value, plain.size_bytes_max)
    else:
        raise HapteraError(f"{path} must be text, not {value}", do="put it in quotes")
    if plain.check is not None:
        try:
            plain.check(checked)
        except HapteraError as error:
            place = "" if error.where is None else f"{error.where}: "
            what = f"{path}: {place}{error.what}"
            raise HapteraError(what, do=error.do, code=error.code) from None
    return checked


def one_of(choices: Iterable[str]) -> Callable[[str], None]:
    """A check that a text is one of these."""
    allowed = [str(one) for one in choices]

    def check(text: str) -> None:
        if text not in allowed:
            raise HapteraError(f"{text!r} is none of these", do=f"write {', '.join(allowed)}")

    return check


def between(low: int, high: int) -> Callable[[int], None]:
    """A check of plain data: a number from `low` to `high`."""

    def check(value: int) -> None:
        if not low <= value <= high:
            raise HapteraError(f"{value} is out of range", do=f"write one from {low} to {high}")

    return check


def check_attribute(kind: Kind, name: str, value: str) -> str:
    """The attribute's value.

    Raises:
        HapteraError: the kind has no such attribute, or the value is too long.
    """
    attribute = kind.attribute(name)
    if attribute is None:
        do = nearest(name, [one.name for one in kind.attributes])
        if name in kind.names:
            do = "it changes, so it is desired"
            if not kind.everywhere:
                do = f"{do}: in a site file write it under `desired`"
        raise UnknownNameError(f"a {kind.name} has no attribute {name!r}", do=do)
    return _text(f"{kind.name}.{name}", value, attribute.size_bytes_max)


def check_attributes(kind: Kind, attributes: Mapping[str, str]) -> dict[str, str]:
    """The attributes of one entity, each by itself.

    Raises:
        HapteraError: the kind has no such attribute, or one is too long.
    """
    return {name: check_attribute(kind, name, text) for name, text in attributes.items()}


def nearest(text: str, names: Iterable[str]) -> str:
    """Advice for a name that is not there: what was meant, perhaps, and all that there are.

    >>> nearest("powr", ["power", "agent"])
    'did you mean power? there are agent, power'
    """
    known = sorted(names)
    if not known:
        return "there are none"
    guess = did_you_mean(next(iter(get_close_matches(text, known, n=1)), None))
    if guess and len(known) > LISTED_MAX:
        return f"{guess}there are {len(known)} names"
    return f"{guess}there {'are' if len(known) > 1 else 'is'} {', '.join(known)}"


def did_you_mean(name: str | None) -> str:
    """How advice begins where a name was mistyped, perhaps."""
    return "" if name is None else f"did you mean {name}? "


def _integer(path: str, value: str | int) -> int:
    if isinstance(value, str):
        if _INTEGER.fullmatch(value) is None:
            raise HapteraError(
                f"{path} must be a whole number, not {_shown(value)}", do="write digits"
            )
        value = int(value)
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise LimitError(f"{path} does not fit 64 bits", do="write a smaller number")
    return value


def _text(path: str, value: str, size_bytes_max: int) -> str:
    if (wrong := steering(value)) is not None:
        raise HapteraError(
            f"{path} has the character {wrong}",
            do="remove it: it cannot be displayed",
        )
    if (size_bytes := len(value.encode())) > size_bytes_max:
        raise LimitError(
            f"{path} takes {size_bytes} bytes, {size_bytes_max} at most", do="make it shorter"
        )
    return value


def _shown(value: str | int) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
