"""The entry points of installed packages: kinds, modules, controllers, backends and verbs."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, TypeVar

from haptera.model.declared.schema import Kind
from haptera.model.errors import DeclarationError, HapteraError

KINDS_GROUP: Final = "haptera.kinds"
MODULES_GROUP: Final = "haptera.modules"
CONTROLLERS_GROUP: Final = "haptera.controllers"
BACKENDS_GROUP: Final = "haptera.backends"
VERBS_GROUP: Final = "haptera.verbs"
Shape = TypeVar("Shape")
# What a stranger's file may do when it is imported.
_FAILS: Final = (ImportError, SyntaxError, NameError, TypeError, ValueError, HapteraError)


@dataclass(frozen=True, slots=True)
class Brought:
    """One entry point: its name, the place it names (`package.file:attribute`), and whose it is."""

    group: str
    name: str
    place: str
    package: str
    version: str

    def __str__(self) -> str:
        return f"{self.package} {self.version} ({self.place})"


def brought(group: str) -> Mapping[str, tuple[Brought, ...]]:
    """What is brought under each name, which should be one thing."""
    # Here, for it takes as long to import as all kinds, and most commands do without.
    from importlib import metadata

    found: dict[str, list[Brought]] = {}
    for entry in metadata.entry_points(group=group):
        package = ("", "") if entry.dist is None else (entry.dist.name, entry.dist.version)
        found.setdefault(entry.name, []).append(Brought(group, entry.name, entry.value, *package))
    return {name: tuple(sorted(some, key=str)) for name, some in sorted(found.items())}


def the_one(some: tuple[Brought, ...]) -> Brought:
    """What is brought under a name.

    Raises:
        HapteraError: several packages bring something of this name.
    """
    if len(some) > 1:
        raise DeclarationError(
            f"{len(some)} packages bring {some[0].name!r}",
            where=f"entry points {some[0].group}: {', '.join(map(str, some))}",
            do="uninstall all but one",
        )
    return some[0]


def brought_kinds(bundled: Mapping[str, Kind]) -> dict[str, Kind]:
    """The kinds that packages bring, beside those that come with haptera.

    Raises:
        HapteraError: one cannot be imported, is no kind, or has another's name.
    """
    return {name: check_kind(the_one(some), bundled) for name, some in brought(KINDS_GROUP).items()}


def check_kind(one: Brought, bundled: Mapping[str, Kind]) -> Kind:
    """The kind that is brought.

    Raises:
        HapteraError: it cannot be imported, is no kind, or is called otherwise or as haptera's own.
    """
    kind = imported(one)
    if not isinstance(kind, Kind):
        raise wrong(one, f"is no Kind but {type(kind).__name__}", "name a Kind")
    if kind.name != one.name:
        raise wrong(one, f"is kind {kind.name!r}", f"call the entry point {kind.name!r}")
    if kind.name in bundled:
        raise wrong(one, "comes with haptera", "give it another name")
    return kind


def imported(one: Brought) -> Any:
    """What stands at the place.

    Raises:
        HapteraError: it cannot be imported.
    """
    place, _, attribute = one.place.partition(":")
    try:
        return getattr(import_module(place), attribute)
    except (*_FAILS, AttributeError) as error:
        what = f"cannot be imported: {type(error).__name__}: {error}"
        raise wrong(one, what, "fix the package, or uninstall it") from error


def imported_as(shape: type[Shape], some: tuple[Brought, ...]) -> Shape:
    """An entry of one package, under a name.

    Raises:
        HapteraError: several bring something, or it cannot be imported, or is no such thing.
    """
    found = imported(one := the_one(some))
    if not isinstance(found, shape):
        what = f"is no {shape.__name__} but {type(found).__name__}"
        raise wrong(one, what, f"name a {shape.__name__}")
    return found


def wrong(one: Brought, what: str, do: str) -> HapteraError:
    """What is wrong with an entry point, and what to do."""
    return DeclarationError(
        f"{one.name!r} of {one}: {what}", where=f"entry points {one.group}", do=do
    )
