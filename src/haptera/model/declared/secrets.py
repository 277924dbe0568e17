"""References to secrets in settings: `{secret: NAME}`, resolved only where a module is started."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from haptera.model.entity import is_name
from haptera.model.errors import HapteraError, ParseError
from haptera.model.parts import Setting

SECRET: Final = "secret"
SECRET_DO: Final = f"keep it by `haptera secret set NAME`, and write {{{SECRET}: NAME}}"
PIECES_MAX: Final = 2
_PATH_BYTES_MAX: Final = 256
_EACH: Final = "*"
_HOLE: Final = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)?)\}")


class Keeper(StrEnum):
    """Who keeps a secret: the parent, or the machine that the module runs on."""

    PARENT = "parent"
    FILE = "file"
    ENVIRONMENT = "env"


class Reference(msgspec.Struct, frozen=True):
    """One secret by name: `NAME`, `file:PATH` or `env:NAME`.

    One with holes, `bmc/{name}`, names a secret for each entity.
    """

    keeper: Keeper
    name: str

    @property
    def has_holes(self) -> bool:
        return "{" in self.name

    def __str__(self) -> str:
        return self.name if self.keeper is Keeper.PARENT else f"{self.keeper}:{self.name}"


def parse_reference(text: str) -> Reference:
    """Read what stands for a secret.

    Raises:
        HapteraError: it names none.
    """
    keeper, colon, rest = text.partition(":")
    whole = not {"{", "}"} & {*_HOLE.sub("x", rest)}
    if not colon and is_secret_name(_HOLE.sub("x", text)):
        return Reference(Keeper.PARENT, text)
    fits = rest.startswith("/") and len(rest.encode(errors="surrogatepass")) <= _PATH_BYTES_MAX
    if keeper == Keeper.FILE and fits and whole:
        return Reference(Keeper.FILE, rest)
    if keeper == Keeper.ENVIRONMENT and rest.isidentifier() and rest.isascii():
        return Reference(Keeper.ENVIRONMENT, rest)
    # It is not quoted: it may be the secret itself.
    raise ParseError(
        "this is not the name of a secret", do="write NAME, file:/PATH or env:HAPTERA_SECRET_NAME"
    )


def is_secret_name(text: str) -> bool:
    """Whether a parent keeps secrets under such a name: `NAME`, or `GROUP/NAME`.

    >>> [is_secret_name(text) for text in ("bmc", "bmc/n01", "bmc/../ca", "a/b/c", "")]
    [True, True, False, False, False]
    """
    pieces = text.split("/")
    return len(pieces) <= PIECES_MAX and all(is_name(piece) for piece in pieces)


def filled(reference: Reference, values: Mapping[str, str]) -> Reference:
    """The secret of one entity, whose name, node and attributes these values are.

    >>> str(filled(parse_reference("bmc/{name}"), {"name": "n01"}))
    'bmc/n01'

    Raises:
        HapteraError: the entity lacks what a hole names, or that makes no name of a secret.
    """

    def fill(hole: re.Match[str]) -> str:
        value = values.get(hole[1])
        if value is None or not is_name(value):
            what = f"secret {reference}: {hole[1]} of the entity is not a valid name"
            raise HapteraError(what, do="give it one: letters, digits, dots, dashes")
        return value

    return Reference(reference.keeper, _HOLE.sub(fill, reference.name))


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
            return  # no value of its type: reported where it is made
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
            raise ParseError(
                "a secret is the whole value, not a part of a text",
                do="write `NAME: {secret: NAME}`",
            )
        case dict():
            for one in settings.values():
                yield from references(one)
        case list():
            for one in settings:
                yield from references(one)
        case _:
            pass


def resolved(settings: Any, values: Mapping[Reference, Any]) -> Any:
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
