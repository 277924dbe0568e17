"""What parts require, and the values that they name, as authors write them and as values."""

import dis
import inspect
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from haptera.model.declared.schema import Applied, Attribute, Relation, Variable
from haptera.model.errors import DeclarationError
from haptera.model.parts import Requirement, Sampler
from haptera.model.reading import Reading
from haptera.sdk.terms import Conditions, SamplerTerms

# The instructions after a value that a function gives, at once or out of two or more.
_GIVES: Final = ("RETURN_VALUE", "YIELD_VALUE", "ASYNC_GEN_WRAP", "JUMP_FORWARD", "STORE_FAST")


def requirements(given: Conditions, kind: str) -> tuple[Requirement, ...]:
    """What a part of this kind requires, by these conditions."""
    return tuple(_requirement(on, allowed, kind) for on, allowed in given.items())


def sampler_of(
    module: str, name: str, readings: tuple[Reading, ...], where: Conditions, terms: SamplerTerms
) -> Sampler:
    """A sampler of these readings.

    Raises:
        HapteraError: they are of several kinds, or none, or the module's `where` names variables.
    """
    if len({one.kind for one in readings}) != 1:
        raise DeclarationError(f"module {module}: a sampler measures readings of one kind")
    if any(isinstance(one, Variable) for one in where):
        raise DeclarationError(
            f"module {module}: its `where` names variables, which change", do="name attributes"
        )
    kind = readings[0].kind
    every_ms, within_ms = in_ms(terms.get("every_s", 10)), in_ms(terms.get("within_s", 5))
    return Sampler(module, name, kind, readings, requirements(where, kind), every_ms, within_ms)


def _requirement(
    on: Variable[Any] | Attribute | Relation, allowed: str | tuple[str, ...], kind: str
) -> Requirement:
    """Of the part's own kind by its bare name, of another's by its path."""
    values = allowed if isinstance(allowed, tuple) else (allowed,)
    if isinstance(on, Relation):
        return Requirement(str(on), tuple(checked(on.variable, values)))
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


def check_digest(path: str, function: Callable[..., object]) -> None:
    """Refuse a look at what is in force that says itself whether it is current.

    That is what haptera finds, by comparing; such a look would never be done.

    Raises:
        DeclarationError: its code gives `Applied.CURRENT`, or its annotation says that it can.
    """
    plain = inspect.unwrap(function)
    annotation = set(re.findall(r"\w+", repr(getattr(plain, "__annotations__", {}).get("return"))))
    code = getattr(plain, "__code__", None)
    pairs = pairwise(dis.get_instructions(code)) if code is not None else ()
    gives = any(one.argval == Applied.CURRENT.name and two.opname in _GIVES for one, two in pairs)
    if gives or (Applied.__name__ in annotation and "str" not in annotation):
        raise DeclarationError(
            f"{path} says itself that what is desired is in force",
            do="return the target's digest where it is, `Applied.STALE` where it is not",
        )


def in_ms(seconds: float) -> int:
    """A time of an author's as a manifest has it."""
    return round(seconds * 1000)
