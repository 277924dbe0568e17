"""What both daemons are made of alike."""

from collections.abc import Iterable
from typing import Final

from haptera.core.modules.catalog import Catalog
from haptera.kinds import KINDS
from haptera.model.changes import Stored
from haptera.model.declared.packing import schema_digest
from haptera.model.declared.schema import Applied, Kind
from haptera.model.errors import Code, HapteraError, StorageError
from haptera.model.parts import Manifest
from haptera.modules import BUNDLED, load
from haptera.runtime.processes.own_modules import OwnModule
from haptera.wire.updates import Codec

# Both sides listen here for datagrams: a restarted agent must be where its parent last heard it.
# A parent takes claims at the same number, over TCP.
HELLO_PORT: Final = 4271
# Where a parent serves what is too large for state to its nodes, over HTTPS.
ARTEFACTS_PORT: Final = 4272


def catalog_of(modules: Iterable[str], others: Iterable[Manifest] = ()) -> Catalog:
    """What these bundled modules declare, beside modules of one's own and controllers.

    Raises:
        HapteraError: one is not there, or declares what cannot be.
    """
    return Catalog(dict(KINDS), [*(load(name).manifest() for name in modules), *others])


def check_stored(stored: Stored) -> None:
    """See that what the store holds is of kinds that there are, and of values that these have.

    Raises:
        HapteraError: a package that brought one of them is gone, or the file was written by others.
    """
    gone = [one.entity for one in stored.entities if one.entity.kind not in KINDS]
    if gone:
        kinds = sorted({one.kind for one in gone})
        raise HapteraError(
            f"{len(gone)} stored entities are of a kind that is not declared: {', '.join(kinds)}",
            where=f"state.db, {gone[0]} among them",
            do="install the package that brings it; with it, apply a site without them, then start",
            code=Code.NOT_INSTALLED,
        )
    check_values(stored, "state.db, table desired")


def check_values(stored: Stored, where: str) -> None:
    """See that what is desired are values that their kinds have.

    Raises:
        StorageError: the file was written by others, or by another version.
    """
    wrong = [
        (one.entity, name)
        for one in stored.entities
        if one.entity.kind in KINDS
        for name, desired in one.desired.items()
        if not _may_be(KINDS[one.entity.kind], name, desired.value)
    ]
    if wrong:
        entity, name = wrong[0]
        raise StorageError(
            f"{len(wrong)} stored values cannot be desired, {name} of {entity} among them",
            where=where,
            do="start the haptera that wrote them; restore the file from a backup,"
            " or remove what is wrong while nothing runs that has it open",
        )


def _may_be(kind: Kind, name: str, value: str | int) -> bool:
    """False of what no version of a variable or plain datum has; its own checks may be stricter."""
    if (plain := kind.plain_named(name)) is not None:
        return isinstance(value, plain.type)
    variable = kind.variable(name)
    if variable is None or variable.values is Applied:
        return True
    return value in [str(one) for one in variable.values]


def absent_manifests(catalog: Catalog) -> list[Manifest]:
    """What the bundled modules declare that the catalog does not have."""
    return [load(name).manifest() for name in sorted(BUNDLED) if name not in catalog.manifests]


def told_to_nodes(own: Iterable[OwnModule]) -> tuple[OwnModule, ...]:
    """Those that a node may plan with: not those of kinds that the site declares, at the parent."""
    return tuple(
        one for one in own if not any(part.kind in KINDS.declared for part in one.manifest.parts)
    )


def codec_of(catalog: Catalog) -> Codec:
    """The codec of a neighbour with the same kinds and parts.

    Kinds that the site declares are the parent's alone.
    """
    kinds = [one for one in KINDS.values() if one.name not in KINDS.declared]
    parts = [one for one in catalog.parts() if one.kind not in KINDS.declared]
    return Codec(KINDS.values(), schema_digest(kinds, parts))
