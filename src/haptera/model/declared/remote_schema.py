"""A side's kinds and modules, as it sends them: so its words can be read, and differences named."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

import msgspec

from haptera.model.declared.schema import Kind
from haptera.model.parts import Manifest

NAMED_MAX = 3

# A value's number on the wire; words hold no more than so many bits of it.
Number = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
Numbers = dict[str, dict[str, Number]]


class ModuleSum(msgspec.Struct, frozen=True, gc=False):
    """One module: its version, and a digest over all that it declares of its parts."""

    version: str
    digest: int


class PlannedKind(msgspec.Struct, frozen=True, gc=False):
    """What entities of one kind are planned with: where it is alike, so are their chains.

    `digest` is over the kind and its parts, `modules` are those that have one.
    """

    digest: int
    modules: tuple[str, ...]


class ToldSchema(msgspec.Struct, frozen=True, gc=False):
    """One side's kinds, each variable's values with their numbers, and its modules.

    `digest` is that of its hellos. `planned` is empty where an older version tells it.
    """

    digest: int
    kinds: dict[str, Numbers]
    modules: dict[str, ModuleSum]
    planned: dict[str, PlannedKind] = {}


class OwnSchema(NamedTuple):
    """What this side plans with, by module and by kind."""

    modules: Mapping[str, ModuleSum]
    planned: Mapping[str, PlannedKind]


def told_schema(digest: int, kinds: Iterable[Kind], own: OwnSchema) -> ToldSchema:
    """What this side tells."""
    numbers = {kind.name: numbers_of(kind) for kind in kinds}
    return ToldSchema(digest, numbers, dict(own.modules), dict(own.planned))


def sums_of(manifests: Iterable[Manifest]) -> dict[str, ModuleSum]:
    """The modules, as they are sent to a neighbour."""
    return {one.name: ModuleSum(one.version, _digest(one)) for one in manifests}


def numbers_of(kind: Kind) -> Numbers:
    """The numbers of each variable's values."""
    return {
        variable.name: {str(value): number for value, number in variable.numbers.items()}
        for variable in kind.variables
    }


def differences(kind: str, ours: OwnSchema, theirs: ToldSchema, who: str) -> str | None:
    """In what entities of a kind are planned otherwise; None where they are planned alike.

    >>> one, two = (ModuleSum(version, 0) for version in "12")
    >>> ours = OwnSchema({"jobs": one}, {"job": PlannedKind(1, ("jobs",))})
    >>> theirs = ToldSchema(2, {}, {"jobs": two}, {"job": PlannedKind(3, ("jobs",))})
    >>> differences("job", ours, theirs, "the agent of n01")
    'the agent of n01 runs jobs 2, here is jobs 1'
    >>> older = ToldSchema(2, {}, {"jobs": one})
    >>> differences("job", ours, older, "the agent of n01")
    'the agent of n01 has other kinds'
    """
    own, other = ours.planned[kind], theirs.planned.get(kind)
    if own == other:
        return None
    if theirs.planned:
        names = {*own.modules, *(() if other is None else other.modules)}
    else:
        names = {*ours.modules, *theirs.modules}
    told = [
        _difference(name, ours.modules.get(name), theirs.modules.get(name))
        for name in sorted(names)
        if ours.modules.get(name) != theirs.modules.get(name)
    ]
    if not told:
        return f"{who} has other kinds{f': {kind}' if theirs.planned else ''}"
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
    declared = msgspec.to_builtins(manifest)
    # An earlier version declares the same parts without it; only who boots the nodes goes by it.
    del declared["enrolment"]
    # Nothing is planned with numbers: two sides that measure different ones act alike.
    del declared["samplers"]
    text = msgspec.json.encode(declared, order="deterministic")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
