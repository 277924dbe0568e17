"""What a side tells of its kinds and modules: so its words can be read, and what differs named."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from haptera.model.declared.schema import Kind
from haptera.model.parts import Manifest

NAMED_MAX = 3

# A value's number on the wire; words hold no more than so many bits of it.
Number = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
Numbers = dict[str, dict[str, Number]]


class ModuleSum(msgspec.Struct, frozen=True, gc=False):
    """One module: its version, and a digest over all that it declares."""

    version: str
    digest: int


class ToldSchema(msgspec.Struct, frozen=True, gc=False):
    """One side's kinds, each variable's values with their numbers, and its modules.

    `digest` is that of its hellos.
    """

    digest: int
    kinds: dict[str, Numbers]
    modules: dict[str, ModuleSum]


def told_schema(digest: int, kinds: Iterable[Kind], manifests: Iterable[Manifest]) -> ToldSchema:
    """What this side tells."""
    return ToldSchema(
        digest,
        {kind.name: numbers_of(kind) for kind in kinds},
        sums_of(manifests),
    )


def sums_of(manifests: Iterable[Manifest]) -> dict[str, ModuleSum]:
    """The modules, as a neighbour is told of them."""
    return {one.name: ModuleSum(one.version, _digest(one)) for one in manifests}


def numbers_of(kind: Kind) -> Numbers:
    """The numbers of each variable's values."""
    return {
        variable.name: {str(value): number for value, number in variable.numbers.items()}
        for variable in kind.variables
    }


def differences(
    ours: Mapping[str, ModuleSum], theirs: Mapping[str, ModuleSum], who: str
) -> str | None:
    """Which modules differ, in words; None where none does, so the kinds must.

    >>> one, two = (ModuleSum(version, 0) for version in "12")
    >>> differences({"jobs": one}, {"jobs": two}, "the agent of n01")
    'the agent of n01 runs jobs 2, here is jobs 1'
    """
    told = [
        _difference(name, ours.get(name), theirs.get(name))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]
    if not told:
        return None
    more = f"; and {len(told) - NAMED_MAX} more differ" if len(told) > NAMED_MAX else ""
    return f"{who} runs {'; '.join(told[:NAMED_MAX])}{more}"


def _difference(name: str, ours: ModuleSum | None, theirs: ModuleSum | None) -> str:
    if theirs is None:
        assert ours is not None
        return f"no {name}, here is {name} {ours.version}"
    if ours is None:
        return f"{name} {theirs.version}, here is none"
    if ours.version == theirs.version:
        return f"{name} {theirs.version} with other parts than here"
    return f"{name} {theirs.version}, here is {name} {ours.version}"


def _digest(manifest: Manifest) -> int:
    text = msgspec.json.encode(msgspec.to_builtins(manifest), order="deterministic")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
