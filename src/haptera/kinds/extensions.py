"""The kind of nodes with all that modules and installed packages add to it."""

from functools import cache
from typing import Final

from haptera.kinds import node, slurm
from haptera.kinds.brought import Brought, brought, imported, the_one, wrong
from haptera.model.declared.schema import Extension, Kind, extend

EXTENSIONS_GROUP: Final = "haptera.extensions"
# Those of the modules that come with haptera.
BUNDLED: Final[tuple[Extension, ...]] = (slurm.extension,)
# An extension is called neither as a kind, nor as a layer of a selector.
TAKEN: Final = frozenset(
    [
        *("backend", "budget", "freeze", "group", "health"),
        *("health-rule", "health-score", "image", "instance", "lease", "module", "node"),
        *("policy", "pool", "power-cap", "replica", "roll", "service", "system", "desired", "last"),
    ]
)


@cache
def node_kind() -> Kind:
    """What a node is, here.

    Raises:
        HapteraError: a package brings what cannot be used.
    """
    return extend(node.kind, (*BUNDLED, *map(_the_one, brought(EXTENSIONS_GROUP).values())))


def check_extension(one: Brought) -> Extension:
    """The extension that is brought.

    Raises:
        HapteraError: it cannot be imported, is none, or is called otherwise or as what there is.
    """
    extension = imported(one)
    if not isinstance(extension, Extension):
        raise wrong(one, f"is no Extension but {type(extension).__name__}", "name an Extension")
    if extension.name != one.name:
        do = f"call the entry point {extension.name!r}"
        raise wrong(one, f"is extension {extension.name!r}", do)
    if one.name in TAKEN or any(one.name == own.name for own in BUNDLED):
        raise wrong(one, "comes with haptera", "give it another name")
    if extension.kind != node.kind.name:
        raise wrong(one, f"extends kind {extension.kind!r}", "extend kind 'node'")
    extend(node.kind, (*BUNDLED, extension))
    return extension


def _the_one(some: tuple[Brought, ...]) -> Extension:
    return check_extension(the_one(some))
