"""What parts require, and the values that they name, as authors write them and as values."""

from typing import Any

from haptera.model.declared.schema import Attribute, Variable
from haptera.model.errors import DeclarationError
from haptera.model.parts import Requirement
from haptera.sdk.terms import Conditions


def requirements(given: Conditions, kind: str) -> tuple[Requirement, ...]:
    """What a part of this kind requires, by these conditions."""
    return tuple(_requirement(on, allowed, kind) for on, allowed in given.items())


def _requirement(
    on: Variable[Any] | Attribute, allowed: str | tuple[str, ...], kind: str
) -> Requirement:
    """Of the part's own kind by its bare name, of another's by its path."""
    values = allowed if isinstance(allowed, tuple) else (allowed,)
    if isinstance(on, Variable):
        checked(on, values)
    return Requirement(
        on.name if on.kind == kind else f"{on.kind}.{on.name}", tuple(map(str, values))
    )


def checked(variable: Variable[Any], values: tuple[str, ...]) -> list[str]:
    """The values as text, each of them one that the variable has."""
    known = [value.value for value in variable.values]
    for value in values:
        if str(value) not in known:
            raise DeclarationError(
                f"{variable.path} is never {str(value)!r}", do=f"use one of {', '.join(known)}"
            )
    return [str(value) for value in values]


def in_ms(seconds: float) -> int:
    """A time of an author's as a manifest has it."""
    return round(seconds * 1000)
