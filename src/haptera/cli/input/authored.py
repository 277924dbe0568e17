"""Modules as their authors name them, loaded, and where each part stands in their files."""

import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, util
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click

from haptera.cli.output.findings.lint_forms import Location
from haptera.kinds.brought import MODULES_GROUP, brought, imported, the_one
from haptera.model.errors import ParseError
from haptera.model.parts import Manifest
from haptera.modules import BUNDLED, load
from haptera.sdk import Module

# What a file's module is called where nothing else is said.
ATTRIBUTE: Final = "module"
_DO: Final = f"name {', '.join(BUNDLED)}, one of a package, FILE.py or PLACE:ATTRIBUTE"


@dataclass(frozen=True, slots=True)
class Authored:
    """What a module declares, and where: each part by its path.

    `reading` is where a function first reads settings, of a module that declares none.
    """

    manifest: Manifest
    places: dict[str, Location]
    reading: Location | None = None


def authored(name: str) -> Authored:
    """The module of this name: bundled, a package's, `FILE.py[:ATTRIBUTE]` or `PLACE[:ATTRIBUTE]`.

    Raises:
        BadParameter: there is none; HapteraError: it declares what cannot be.
    """
    if name in BUNDLED:
        module = load(name)
    elif name in (there := brought(MODULES_GROUP)):
        one = the_one(there[name])
        module = _module(imported(one), *one.place.split(":", 1))
    else:
        module = _imported(name)
    manifest = module.manifest()
    reading = next(_readings(module), None) if manifest.settings is None else None
    return Authored(manifest, dict(_places(module)), reading)


def brought_manifests() -> list[Manifest]:
    """What the modules of installed packages declare.

    Raises:
        HapteraError: one cannot be imported, or several packages bring it.
    """
    names = brought(MODULES_GROUP).keys() - BUNDLED.keys()
    return [authored(name).manifest for name in sorted(names)]


def _imported(name: str) -> Module[Any]:
    place, _, attribute = name.partition(":")
    is_file = place.endswith(".py")
    if not is_file and not all(one.isidentifier() for one in place.split(".")):
        raise click.BadParameter(f"{name!r} names no module: {_DO}")
    try:
        found = _file(Path(place)) if is_file else _importable(place)
    except ImportError as error:
        raise click.BadParameter(f"{name!r} cannot be imported: {error}; {_DO}") from error
    except SyntaxError as error:
        where = f"{error.filename}:{error.lineno}"
        raise ParseError(f"not valid Python: {error.msg}", where=where, do="mend it") from None
    attribute = attribute or ATTRIBUTE
    return _module(getattr(found, attribute, None), place, attribute)


def _module(found: object, place: str, attribute: str) -> Module[Any]:
    if not isinstance(found, Module):
        raise click.BadParameter(f"{place} has no Module called {attribute!r}")
    return found


def _file(path: Path) -> ModuleType:
    """Import a file, which finds what lies beside it."""
    spec = util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"there is no file {path}")
    sys.path.insert(0, str(path.resolve().parent))
    found = sys.modules[path.stem] = util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def _importable(place: str) -> ModuleType:
    """Import what is installed, or lies below the working directory."""
    sys.path.insert(0, str(Path.cwd()))
    return import_module(place)


def _places(module: Module[Any]) -> Iterator[tuple[str, Location]]:
    for name, function in (*module.lookers.items(), *module.steppers.items()):
        code = getattr(inspect.unwrap(function), "__code__", None)
        if code is not None:
            yield f"{module.name}.{name}", Location(_told(code.co_filename), code.co_firstlineno)


def _readings(module: Module[Any]) -> Iterator[Location]:
    """Where functions of the module read an attribute of this name, as `target.settings` is."""
    connect: Any = module.connect
    if isinstance(connect, type):
        connect = vars(connect).get("__init__")
    for function in (connect, *module.lookers.values(), *module.steppers.values()):
        code = getattr(function, "__code__", None)
        if code is not None and "settings" in code.co_names:
            yield Location(_told(code.co_filename), code.co_firstlineno)


def _told(file: str) -> str:
    """Below the working directory, as from there."""
    path, here = Path(file).resolve(), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
