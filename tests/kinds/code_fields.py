"""All fields that haptera declares, of kinds, settings and requests; which look like code."""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from haptera.controllers import BUNDLED as CONTROLLERS
from haptera.kinds import KINDS
from haptera.kinds.extensions import BUNDLED as BROUGHT
from haptera.model.declared.meaning import MEANINGS, Meaning, looks_like_code
from haptera.model.declared.schema import Attribute, Plain
from haptera.modules import BUNDLED, load

# In what is said of it.
SAID = re.compile(r"\b(?:commands?|programs?|scripts?|paths?|folders?|files?|reads|runs)\b")


@dataclass(frozen=True)
class Field:
    """One field: where it is, what is said of it, its meaning, and by which type it can be text."""

    place: str
    name: str
    said: str
    meaning: Meaning | None
    hint: Any = str
    default: object = None

    @property
    def looks_like_code(self) -> bool:
        if not any(_texts(self.hint)):
            return False
        is_list = get_origin(_bare(self.hint)) in (list, tuple)
        return (
            is_list
            or looks_like_code(self.name)
            or self.name == "user"
            or _is_path(self.default)
            or bool(SAID.search(self.said))
        )


def of_kinds() -> Iterator[Field]:
    """Plain data and attributes, with the comments above them."""
    for kind in KINDS.values():
        comments = _comments(kind.name, f"rules.{kind.name}", *(one.name for one in BROUGHT))
        for one in (*kind.plain, *kind.attributes):
            if isinstance(one, Attribute) or one.type is str:
                said = comments.get(one.name, "")
                yield Field(f"{kind.name}.{one.name}", one.name, said, one.meaning)


def _comments(*files: str) -> dict[str, str]:
    """What stands above each field that one of these declares, by its name."""
    found: dict[str, str] = {}
    for name in files:
        try:
            source = inspect.getsource(import_module(f"haptera.kinds.{name}"))
        except ModuleNotFoundError:
            continue
        lines = source.splitlines()
        for one in ast.walk(ast.parse(source)):
            match one:
                case ast.Assign(value=ast.Call(func=ast.Name(id="Plain" | "Attribute"), args=args)):
                    above, at = [], one.lineno - 2
                    while lines[at].startswith("#"):
                        above, at = [lines[at].strip("# "), *above], at - 1
                    assert isinstance(args[1], ast.Constant)
                    found[str(args[1].value)] = " ".join(above)
    return found


def of_settings() -> Iterator[Field]:
    """The settings of the modules and controllers that come with haptera."""
    authors = [load(name) for name in BUNDLED]
    for place in (*CONTROLLERS.values(), "haptera.controllers.groups:controller"):
        module, _, attribute = place.partition(":")
        authors.append(getattr(import_module(module), attribute))
    for author in authors:
        if author._settings is not None:
            yield from _of_shape(f"settings of {author.name}: ", author._settings)


def _of_shape(place: str, shape: Any) -> Iterator[Field]:
    hints = get_type_hints(shape)
    for one in fields(shape):
        hint = hints[one.name]
        meaning = next((MEANINGS[leaf] for leaf in _texts(hint) if leaf in MEANINGS), None)
        yield Field(f"{place}{one.name}", one.name, "", meaning, hint, one.default)
        for inner in filter(is_dataclass, (_bare(hint), *get_args(_bare(hint)))):
            yield from _of_shape(f"{place}{one.name}.", inner)


def _is_path(default: object) -> bool:
    """True if a text, or one of a list, begins as a path does."""
    texts = default if isinstance(default, tuple) else (default,)
    return any(isinstance(one, str) and one.startswith("/") for one in texts)


def of_request(shape: Any) -> Iterator[Field]:
    """The fields of a request's body, at any depth."""
    shape = _bare(shape)
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        for name, hint in get_type_hints(shape, include_extras=True).items():
            said = getattr(hint, "__metadata__", ())
            meaning = next((one for one in said if isinstance(one, Meaning)), None)
            yield Field(f"{shape.__name__}.{name}", name, "", meaning, hint)
            yield from of_request(hint)
    for one in get_args(shape):
        yield from of_request(one)


def _bare(hint: Any) -> Any:
    """A type without what is annotated, and without None."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        rest = [one for one in get_args(hint) if one is not type(None)]
        return _bare(rest[0]) if len(rest) == 1 else hint
    return hint


def _texts(hint: Any) -> Iterator[Any]:
    """The types of text, or bytes, below a type."""
    hint = _bare(hint)
    if hint in (str, bytes) or hasattr(hint, "__supertype__"):
        yield hint
    elif get_origin(hint) is not Literal:
        for one in get_args(hint):
            yield from _texts(one)


def plain_code() -> Iterator[tuple[str, Plain]]:
    """Plain data with a meaning, of which kind."""
    for kind in KINDS.bundled.values():
        yield from ((kind.name, one) for one in kind.plain if one.meaning is not None)
