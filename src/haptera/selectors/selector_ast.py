"""What a selector is made of: names and comparisons, joined by `and`, `or` and `not`."""

import operator
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from haptera.model.entity import EntityId
from haptera.selectors.names import GroupName
from haptera.selectors.nodeset import NodeSet

NODE: Final = "node"
# What is asked under this name is where an entity stands: converged, stuck, and so on.
CONDITION: Final = "condition"
# The age of what was never read: more than any other.
NEVER_MS: Final = 2**63

OLDER: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class StateLayer(StrEnum):
    """Which of the values of a variable is asked for."""

    KNOWN = ""  # what is known now, else `unknown`; what is not a variable has only this
    DESIRED = "desired"
    LAST = "last"  # what is known, or else remembered


@dataclass(frozen=True, slots=True)
class Datum:
    """What is asked of an entity: its own, or of its node (`node.agent`); `at` is its place."""

    name: str
    kind: str | None = None
    layer: StateLayer = StateLayer.KNOWN
    at: int = field(default=0, compare=False)

    def resolved(self, kinds: Container[str]) -> "Datum":
        """The same, its kind being one of these; any other is an extension: part of the name.

        >>> Datum("address", "ipmi").resolved({"node"})
        Datum(name='ipmi.address', kind=None, layer=<StateLayer.KNOWN: ''>, at=0)
        """
        if self.kind is None or self.kind in kinds:
            return self
        return Datum(f"{self.kind}.{self.name}", None, self.layer, self.at)

    def __str__(self) -> str:
        return ".".join(one for one in (self.kind, self.layer.value, self.name) if one)


class Subject(Protocol):
    """An entity as a selector sees it."""

    @property
    def id(self) -> EntityId: ...

    def value(self, datum: Datum) -> str | None:
        """The datum's value, empty where none is set; None where there is no such datum."""

    def age_ms(self, datum: Datum) -> int | None:
        """How long ago it was read, or has been so; None where there is no such datum."""

    def measured(self, series: str) -> float | None:
        """The last number of a series, where it is fresh; None where there is none."""

    def groups(self, group: GroupName) -> Collection[str]:
        """The nodes of a group."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """The entities of a kind (None: any), of these names, on these nodes (None: wherever)."""

    kind: str | None = None
    names: NodeSet | None = None
    nodes: NodeSet | None = None
    at: int = 0

    @property
    def on(self) -> NodeSet | None:
        """The nodes that it is limited to."""
        return self.names if self.kind == NODE else self.nodes

    @property
    def groups(self) -> list[GroupName]:
        """The groups that it names."""
        sets = (nodes for nodes in (self.names, self.nodes) if nodes is not None)
        return [group for nodes in sets for group in nodes.groups]

    def means(self, subject: Subject) -> bool:
        one = subject.id
        return (
            self.kind in (None, one.kind)
            and (self.names is None or self.names.has(one.name, subject.groups))
            and (
                self.nodes is None
                or (one.node is not None and self.nodes.has(one.node, subject.groups))
            )
        )

    def by_name(self, entity: EntityId) -> bool | None:
        if self.kind not in (None, entity.kind):
            return False
        grouped = False
        for nodes, name in ((self.names, entity.name), (self.nodes, entity.node)):
            if nodes is None:
                continue
            if name is None:
                return False
            if nodes.groups:
                grouped = True
            elif not nodes.has(name):
                return False
        return None if grouped else True


@dataclass(frozen=True, slots=True)
class Comparison:
    """The entities that have the datum, and of one of these values; or, `otherwise`, of none."""

    datum: Datum
    values: tuple[str, ...]
    otherwise: bool

    def means(self, subject: Subject) -> bool:
        value = subject.value(self.datum)
        return value is not None and (value in self.values) != self.otherwise

    def by_name(self, _entity: EntityId) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Age:
    """The entities that have the datum, and of an age that compares so with this."""

    datum: Datum
    compare: str
    than_ms: int

    def means(self, subject: Subject) -> bool:
        age_ms = subject.age_ms(self.datum)
        return age_ms is not None and OLDER[self.compare](age_ms, self.than_ms)

    def by_name(self, _entity: EntityId) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Amount:
    """The entities whose last number of this series compares so with a given one."""

    series: str
    compare: str
    than: float
    at: int = field(default=0, compare=False)

    @property
    def datum(self) -> Datum:
        """As what else can be asked of an entity, for what is said of it."""
        return Datum(self.series, at=self.at)

    def means(self, subject: Subject) -> bool:
        value = subject.measured(self.series)
        return value is not None and OLDER[self.compare](value, self.than)

    def by_name(self, _entity: EntityId) -> None:
        return None


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple["Choice", ...]

    def means(self, subject: Subject) -> bool:
        return all(part.means(subject) for part in self.parts)

    def by_name(self, entity: EntityId) -> bool | None:
        found = {part.by_name(entity) for part in self.parts}
        return False if False in found else None if None in found else True


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple["Choice", ...]

    def means(self, subject: Subject) -> bool:
        return any(part.means(subject) for part in self.parts)

    def by_name(self, entity: EntityId) -> bool | None:
        found = {part.by_name(entity) for part in self.parts}
        return True if True in found else None if None in found else False


@dataclass(frozen=True, slots=True)
class Not:
    part: "Choice"

    def means(self, subject: Subject) -> bool:
        return not self.part.means(subject)

    def by_name(self, entity: EntityId) -> bool | None:
        found = self.part.by_name(entity)
        return None if found is None else not found


# `means` tells whether an entity is meant; `by_name` the same where its name and kind decide, and
# else None.
Choice = Pattern | Comparison | Age | Amount | AllOf | AnyOf | Not


def parts_of(choice: Choice) -> Iterator[Pattern | Comparison | Age | Amount]:
    """All that is joined in it, from left to right."""
    match choice:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from parts_of(part)
        case Not(part):
            yield from parts_of(part)
        case Pattern() | Comparison() | Age() | Amount():
            yield choice
