"""References to secrets in settings: `{secret: NAME}`, resolved only where a module is started."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from haptera.model.entity import is_name
from haptera.model.errors import HapteraError
from haptera.model.parts import Setting

SECRET: Final = "secret"
SECRET_DO: Final = f"keep it by `haptera secret set NAME`, and write {{{SECRET}: NAME}}"
_PATH_BYTES_MAX: Final = 256
_EACH: Final = "*"


class Keeper(StrEnum):
    """Who keeps a secret: the parent, or the machine that the module runs on."""

    PARENT = "parent"
    FILE = "file"
    ENVIRONMENT = "env"


class Reference(msgspec.Struct, frozen=True):
    """One secret by name: `NAME`, `file:PATH` or `env:NAME`."""

    keeper: Keeper
    name: str

    def __str__(self) -> str:
        return self.name if self.keeper is Keeper.PARENT else f"{self.keeper}:{self.name}"


def parse_reference(text: str) -> Reference:
    """Read what stands for a secret.

    Raises:
        HapteraError: it names none.
    """
    keeper, colon, rest = text.partition(":")
    if not colon and is_name(text):
        return Reference(Keeper.PARENT, text)
    if keeper == Keeper.FILE and rest.startswith("/") and len(rest.encode()) <= _PATH_BYTES_MAX:
        return Reference(Keeper.FILE, rest)
    if keeper == Keeper.ENVIRONMENT and rest.isidentifier() and rest.isascii():
        return Reference(Keeper.ENVIRONMENT, rest)
    # It is not quoted: it may be the secret itself.
    raise HapteraError("this names no secret", do="write NAME, file:/PATH or env:VARIABLE")


def open_secrets(declared: Iterable[Setting], given: Mapping[str, object]) -> list[str]:
    """The settings that are secrets, and are given as they are, each with the way to it.

    >>> from haptera.model.parts import Setting
    >>> open_secrets([Setting("key", secret=True)], {"key": "hunter2", "port": 1})
    ['key']
    >>> open_secrets([Setting("key", secret=True)], {"key": {"secret": "bmc"}})
    []
    >>> open_secrets([Setting("keys", secrets=("*",))], {"keys": {"n1": "hunter2"}})
    ['keys.n1']
    """
    found: list[str] = []
    for one in declared:
        for path in ("",) * one.secret + one.secrets:
            found += _open(given.get(one.name), path.split(".") if path else [], one.name)
    return found


def _open(value: object, path: Sequence[str], at: str) -> Iterator[str]:
    """Where a secret stands open, by this path below a value."""
    if value is None or is_reference(value):
        return
    if not path:
        yield at
        return
    first, *rest = path
    match value:
        case dict():
            items = list(value.items())
        case list() | tuple():
            items = list(enumerate(value))
        case _:
            return  # no value of its type: told where it is made
    for name, one in items:
        if first in (_EACH, str(name)):
            yield from _open(one, rest, f"{at}.{name}")


def is_reference(value: object) -> bool:
    """Whether it stands for a secret; what it names is checked elsewhere."""
    return isinstance(value, dict) and SECRET in value


def references(settings: Any) -> Iterator[Reference]:
    """All that are in some settings, in order.

    >>> [str(one) for one in references({"user": "eve", "password": {"secret": "bmc"}})]
    ['bmc']

    Raises:
        HapteraError: one names no secret, or something stands beside it.
    """
    match settings:
        case {"secret": str(text)} if len(settings) == 1:
            yield parse_reference(text)
        case dict() if SECRET in settings:
            raise HapteraError(
                "a secret is named alone, as a text", do="write `NAME: {secret: NAME}`"
            )
        case dict():
            for one in settings.values():
                yield from references(one)
        case list():
            for one in settings:
                yield from references(one)
        case _:
            pass


def resolved(settings: Any, values: Mapping[Reference, str]) -> Any:
    """The settings with each reference replaced by its value."""
    match settings:
        case {"secret": str(text)}:
            return values[parse_reference(text)]
        case dict():
            return {key: resolved(one, values) for key, one in settings.items()}
        case list():
            return [resolved(one, values) for one in settings]
        case _:
            return settings
