"""The settings of a module as a type: declared by its author, listed in its manifest, made here."""

import dataclasses
import types
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NewType, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from haptera.model.declared.desired_check import nearest
from haptera.model.declared.meaning import MEANINGS
from haptera.model.errors import DeclarationError
from haptera.model.parts import Setting, SettingType

# A setting that nobody may see: a site file gives it by reference, `{secret: NAME}`.
Secret = NewType("Secret", str)

# How deep settings may be, in dataclasses, lists and mappings.
DEPTH_MAX: Final = 8
_EACH: Final = "*"

_TYPES: Final[Mapping[Any, SettingType]] = {
    str: SettingType.TEXT,
    Secret: SettingType.TEXT,
    **dict.fromkeys(MEANINGS, SettingType.TEXT),
    int: SettingType.INTEGER,
    float: SettingType.NUMBER,
    bool: SettingType.BOOLEAN,
}


def declared(shape: type) -> tuple[Setting, ...]:
    """What a dataclass says of each setting.

    >>> @dataclasses.dataclass
    ... class Strip:
    ...     password: Secret
    ...     pause_s: float = 1.0
    >>> [str(one) for one in declared(Strip)]
    ['password: text, secret, required', 'pause_s: number']

    Raises:
        HapteraError: it is no dataclass.
    """
    if not dataclasses.is_dataclass(shape):
        raise DeclarationError(f"{shape!r} declares no settings", do="name a dataclass")
    return tuple(_settings(shape))


def secrets_in(declared: Iterable[Setting], given: Mapping[str, Any]) -> tuple[str, ...]:
    """The secrets among some settings, by what is declared of them; the longest first.

    >>> strips = Setting("strips", secrets=("*.key",))
    >>> secrets_in([strips], {"strips": [{"key": "opal", "at": "rack1"}, {"key": "beryl"}]})
    ('beryl', 'opal')
    """
    found: set[str] = set()
    for one in declared:
        for path in ("",) if one.secret else one.secrets:
            found.update(_texts_at(given.get(one.name), path.split(".") if path else []))
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def _texts_at(value: Any, path: Sequence[str]) -> Iterator[str]:
    """The texts at a path, whatever is there instead of them."""
    match value, path:
        case str(), []:
            yield value
        case dict(), [step, *_] if step != _EACH:
            yield from _texts_at(value.get(step), path[1:])
        case dict() | list(), [step, *_] if step == _EACH:
            for one in value.values() if isinstance(value, dict) else value:
                yield from _texts_at(one, path[1:])
        case _:
            pass


def _settings(shape: type) -> Iterator[Setting]:
    hints = get_type_hints(shape)
    for one in dataclasses.fields(shape):
        given = {one.default, one.default_factory} - {dataclasses.MISSING}
        hint = _without_none(hints[one.name])
        yield Setting(
            one.name,
            _TYPES.get(hint, SettingType.ANY),
            required=not given,
            secret=hint is Secret,
            secrets=() if hint is Secret else _paths(hint, {Secret}),
            code=_paths(hint, MEANINGS),
        )


def _paths(hint: Any, of: Container[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_below(hint, of, DEPTH_MAX)))


def _below(hint: Any, of: Container[Any], depth: int) -> Iterator[str]:
    """The paths of what has one of these types in a value of this one; `*` is each of its items."""
    if depth == 0:
        do = "declare them flatter, or without recursion"
        raise DeclarationError(f"settings over {DEPTH_MAX} levels deep", do=do)
    if hint in of:
        yield ""
        return
    if get_origin(hint) in (Union, types.UnionType):
        for one in get_args(hint):
            yield from _below(one, of, depth)
        return
    if (wider := getattr(hint, "__supertype__", None)) is not None:
        yield from _below(wider, of, depth)  # a NewType of one of these is one
        return
    for name, inner in _within(hint):
        yield from (f"{name}.{path}".rstrip(".") for path in _below(inner, of, depth - 1))


def _within(hint: Any) -> list[tuple[str, Any]]:
    """What a value of a type has in it, by its names in JSON; `*` is each of its items."""
    if not isinstance(hint, type) or get_origin(hint) is not None:
        return [(_EACH, one) for one in get_args(hint)]
    hints = get_type_hints(hint)
    if dataclasses.is_dataclass(hint):
        return [(one.name, hints[one.name]) for one in dataclasses.fields(hint)]
    if issubclass(hint, msgspec.Struct) and not hint.__struct_config__.array_like:
        return [(one.encode_name, hints[one.name]) for one in msgspec.structs.fields(hint)]
    if is_typeddict(hint):
        return list(hints.items())
    # As lists: of a NamedTuple, and of a Struct that is like one.
    return [(_EACH, one) for one in hints.values()] if _is_listed(hint) else []


def _is_listed(hint: type) -> bool:
    return issubclass(hint, msgspec.Struct) or (
        issubclass(hint, tuple) and hasattr(hint, "_fields")
    )


def _without_none(hint: Any) -> Any:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    rest = [one for one in get_args(hint) if one is not type(None)]
    return rest[0] if len(rest) == 1 else hint


def made(shape: type, given: Mapping[str, Any], module: str) -> Any:
    """The settings that are given, in the declared shape.

    Raises:
        HapteraError: they do not fit; no value is in its words.
    """
    names = [one.name for one in dataclasses.fields(shape)]
    where = f"settings of module {module}"
    for name in given:
        if name not in names:
            raise DeclarationError(
                f"there is no setting {name!r}", where=where, do=nearest(name, names)
            )
    try:
        return msgspec.convert(dict(given), shape)
    except ValueError as error:  # of another type, or text that no decoder of JSON gives
        raise DeclarationError(str(error), where=where, do="see what it declares") from None
