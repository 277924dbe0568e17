"""How a kind of entity is declared: its variables, attributes and plain data, once."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from haptera.model.declared.meaning import Meaning
from haptera.model.entity import NAME_BYTES_MAX, check_name
from haptera.model.errors import DeclarationError, DuplicateError, LimitError

WORD_BITS = 64
# Two flags for each value: it is remembered, it is inferred.
FLAG_BITS = 2
WORDS_MAX = 32
# The limit of one kind: a receiver of fragments keeps so many until all are there.
VARIABLES_MAX = 256
# A variable, attribute or plain datum may be called EXTENSION.NAME.
DECLARED_NAME_BYTES_MAX = 2 * NAME_BYTES_MAX + 1

Values = TypeVar("Values", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Variable(Generic[Values]):
    """A mutation variable: a finite enum whose first value is its *unknown*.

    `numbers` gives each value its number on the wire; a number, once given, is never reused.
    `reads_as` are values that are desired by one word and read as another once they have come
    about (`draining`, `drained`). One that is `heeded` is no goal where no step brings it about:
    what is desired of it is heeded where it is stored.
    """

    kind: str
    name: str
    values: type[Values]
    numbers: Mapping[Values, int] = field(hash=False, compare=False)
    reads_as: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    heeded: bool = False

    def __post_init__(self) -> None:
        numbers = sorted(self.numbers.values())
        if set(self.numbers) != set(self.values) or len(set(numbers)) != len(numbers):
            raise DeclarationError(f"{self.path}: each value needs a number of its own")
        if self.numbers[self.unknown] != 0:
            raise DeclarationError(f"{self.path}: the number of {self.unknown} must be 0")
        if any(value.endswith("?") or value == "*" for value in self.values):
            raise DeclarationError(f"{self.path}: no value ends in '?' or is '*'")
        if long := [one for one in self.values if len(one.encode()) > DIGEST_BYTES_MAX]:
            what = f"{self.path}: a value takes more than {DIGEST_BYTES_MAX} bytes: {long[0]}"
            raise LimitError(what, do="call it by a shorter name")

    @property
    def path(self) -> str:
        """How another kind names it: `node.agent`."""
        return f"{self.kind}.{self.name}"

    @property
    def unknown(self) -> Values:
        return next(iter(self.values))

    def has(self, value: str | int) -> bool:
        """Whether this can be read of it; what is in force is a digest, of any value."""
        return self.values is Applied or any(value == one for one in self.values)

    def goal(self, desired: str) -> str:
        """The value that is read once this one, which is desired, has come about."""
        return self.reads_as.get(desired, desired)

    @property
    def bits(self) -> int:
        """How many bits a value takes on the wire."""
        return max(self.numbers.values()).bit_length()


@dataclass(frozen=True, slots=True)
class Attribute:
    """Plain data that no part changes or looks at: constant while planning (platform, rack).

    A `wide` one decides about more than its entity: where that is reached, what fails with it,
    which rules hold for it. So a token that is limited to some entities may not change it. One
    that says nothing of that is wide: an outlet's number switches whatever is plugged in there.
    One with a `meaning` is code: see `Plain`.
    """

    kind: str
    name: str
    size_bytes_max: int = 64
    wide: bool = True
    meaning: Meaning | None = None


@dataclass(frozen=True, slots=True)
class Plain:
    """Plain desired data of one type (a command, a port), part of what `applied` compares.

    `check` raises a HapteraError where a value of this type cannot be meant all the same.
    `compared_by` are the variables that compare it; None: all that compare at all.
    One with a `meaning` is code: to change it takes the scope of who may run commands there.
    """

    kind: str
    name: str
    type: type[str] | type[int]
    size_bytes_max: int = 64
    check: Callable[[Any], object] | None = field(default=None, hash=False, compare=False)
    compared_by: tuple[str, ...] | None = None
    meaning: Meaning | None = None

    def is_compared_by(self, variable: str | None) -> bool:
        """Whether this variable says of it that it is in force, or not; None stands for any."""
        return variable is None or self.compared_by is None or variable in self.compared_by


@dataclass(frozen=True, slots=True)
class Relation:
    """A variable of another entity, of the whole cluster: the one that an attribute names.

    The attribute is the entity's own or its node's: a node's coolant loop is that of its rack.

    Raises:
        HapteraError: they are of one kind, so an entity would depend on one like itself.
    """

    variable: Variable[Any]
    by: Attribute

    def __post_init__(self) -> None:
        if self.variable.kind == self.by.kind:
            what = f"{self}: a {self.by.kind} cannot depend on another one"
            raise DeclarationError(what, do="name an attribute of another kind")

    def __str__(self) -> str:
        """The name for parts and people: `coolant[node.rack].state`."""
        return f"{self.variable.kind}[{self.by.kind}.{self.by.name}].{self.variable.name}"


class Halt(NamedTuple):
    """Plain data that says, while it is there, why a controller does not go on with an entity.

    `needs` is what it takes to go on: what a person may do.
    """

    said: Plain
    needs: str


class Serving(NamedTuple):
    """The values of an entity while it serves, and the service that it belongs to, by its name.

    A disruptive step on it harms who is served, and nothing else on its node: it needs a place in
    the budget of its service, and no permit.
    """

    variable: Variable[Any]
    value: str
    service: Callable[[str], str] = str


class Applied(StrEnum):
    """Whether the plain desired data of an entity is in force."""

    UNKNOWN = "unknown"
    STALE = "stale"
    CURRENT = "current"


# What a look at such a variable may answer at most.
DIGEST_BYTES_MAX = 64


def digest_fault(value: str) -> str | None:
    """Why this is no answer of a look at what is in force; None where it can be one.

    >>> digest_fault("01e7b720ff566d53"), digest_fault("stale")
    (None, None)
    >>> digest_fault("current")
    "'current', which is no digest: answer the digest of the desired data that are in force"
    """
    if value == Applied.CURRENT:
        do = "answer the digest of the desired data that are in force"
        return f"{str(value)!r}, which is no digest: {do}"
    if len(value.encode()) > DIGEST_BYTES_MAX:
        return f"a digest of over {DIGEST_BYTES_MAX} bytes"
    return None


@dataclass(frozen=True, slots=True)
class Kind:
    """All that haptera keeps about entities of one sort.

    `borrows` are mutation variables of the entity's node that its parts may name (`node.agent`).
    It is `related` to entities of the whole cluster, whose variables its parts may name as well.
    `leaves` is what an entity is brought to once it is no longer declared, before it is forgotten.
    An entity sent `everywhere` is the whole cluster's, and each node's agent has it. One
    that is `of_cluster` is the whole cluster's too, and there once something of it is desired.
    What is code of one whose work is done `on_nodes` runs there, else at the parent.
    All that it declares may be more than one entity has room for: `check_size`. `in_force` are the
    variables that are to become current, all where the first of them can; without them, the first
    that compares at all. What `halts` is stuck, though nothing that a module serves is desired of
    it. An entity `serves` people or programs while it reads so. `whole` raises a HapteraError where
    values that can each be desired mean nothing together. Of one that is not on nodes there are
    `count_max` at most, for one task works through them all; None where each stands for a machine.
    `former` names are what its variables were called once, each with what to write instead.

    Raises:
        HapteraError: two things bear one name, a name is too long, or there are too many values.
    """

    name: str
    variables: tuple[Variable[Any], ...]
    attributes: tuple[Attribute, ...] = ()
    plain: tuple[Plain, ...] = ()
    borrows: tuple[Variable[Any], ...] = ()
    related: tuple[Relation, ...] = ()
    leaves: tuple[tuple[Variable[Any], str], ...] = ()
    everywhere: bool = False
    of_cluster: bool = False
    on_nodes: bool = False
    in_force: tuple[Variable[Any], ...] = ()
    halts: Halt | None = None
    serves: Serving | None = None
    count_max: int | None = 10_000
    former: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    whole: Callable[[Mapping[str, str | int]], None] | None = field(
        default=None, hash=False, compare=False
    )
    _by_name: Mapping[str, Variable[Any] | Attribute | Plain] = field(
        init=False, repr=False, hash=False, compare=False
    )

    def __post_init__(self) -> None:
        by_name = {one.name: one for group in self._groups() for one in group}
        object.__setattr__(self, "_by_name", by_name)
        if not self.in_force:
            first = next((one for one in self.variables if one.values is Applied), None)
            object.__setattr__(self, "in_force", () if first is None else (first,))
        names = self.names
        check_name(self.name)
        if long := [one for one in names if len(one.encode()) > DECLARED_NAME_BYTES_MAX]:
            what = f"kind {self.name}: a name takes more than {DECLARED_NAME_BYTES_MAX} bytes"
            raise LimitError(f"{what}: {long[0]}", do="make it shorter")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise DuplicateError(f"kind {self.name} declares twice: {', '.join(twice)}")
        if len(self.variables) > VARIABLES_MAX:
            raise LimitError(
                f"kind {self.name} has {len(self.variables)} variables, {VARIABLES_MAX} at most:"
                f" {_of_each(Counter(map(_whose, self.variables)))}",
                do="declare fewer variables",
            )
        if self.bits > WORD_BITS * WORDS_MAX:
            taken: Counter[str] = Counter()
            for one in self.variables:
                taken[_whose(one)] += one.bits + FLAG_BITS
            raise LimitError(
                f"kind {self.name}: its values take {self.bits} bits, {WORD_BITS * WORDS_MAX} at"
                f" most: {_of_each(taken)}",
                do="declare fewer variables, or fewer values",
            )

    def _groups(self) -> tuple[Sequence[Variable[Any] | Attribute | Plain], ...]:
        return self.variables, self.attributes, self.plain

    @property
    def names(self) -> list[str]:
        """Of all its variables, attributes and plain data."""
        return [one.name for group in self._groups() for one in group]

    @property
    def bits(self) -> int:
        """A value, and whether it is remembered and whether it is inferred, for each variable."""
        return sum(variable.bits + FLAG_BITS for variable in self.variables)

    def named(self, name: str) -> Variable[Any] | Attribute | Plain | None:
        return self._by_name.get(name)

    def variable(self, name: str) -> Variable[Any] | None:
        one = self._by_name.get(name)
        return one if isinstance(one, Variable) else None

    def plain_named(self, name: str) -> Plain | None:
        one = self._by_name.get(name)
        return one if isinstance(one, Plain) else None

    def has(self, name: str, value: str | int) -> bool:
        """Whether a variable or plain datum of this name can have this value."""
        variable = self.variable(name)
        return self.plain_named(name) is not None if variable is None else variable.has(value)

    def attribute(self, name: str) -> Attribute | None:
        one = self._by_name.get(name)
        return one if isinstance(one, Attribute) else None


@dataclass(frozen=True, slots=True)
class Extension:
    """Variables and attributes that a module or package adds to a kind, under its own name.

    Each is called `NAME.something`: `ipmi.address`. What the kind is `related` to has names of its
    own.

    Raises:
        HapteraError: one is called otherwise, or is another kind's.
    """

    name: str
    variables: tuple[Variable[Any], ...] = ()
    attributes: tuple[Attribute, ...] = ()
    related: tuple[Relation, ...] = ()
    kind: str = "node"

    def __post_init__(self) -> None:
        declared: tuple[Variable[Any] | Attribute, ...] = (*self.variables, *self.attributes)
        for one in declared:
            own, dot, name = one.name.partition(".")
            if one.kind != self.kind or own != self.name or not dot or "." in name or not name:
                raise DeclarationError(
                    f"declares {one.kind}.{one.name}",
                    where=f"extension {self.name}",
                    do=f"call it {self.name}.NAME, of kind {self.kind}",
                )


def extend(kind: Kind, extensions: Iterable[Extension]) -> Kind:
    """The kind with all that these add to it.

    >>> bare = Kind("node", ())
    >>> extend(bare, [Extension("ipmi", attributes=(Attribute("node", "ipmi.lan"),))]).names
    ['ipmi.lan']
    """
    added = tuple(extensions)
    return replace(
        kind,
        variables=(*kind.variables, *(one for each in added for one in each.variables)),
        attributes=(*kind.attributes, *(one for each in added for one in each.attributes)),
        # Two packages may need the same.
        related=tuple(dict.fromkeys((*kind.related, *(r for one in added for r in one.related)))),
    )


def _whose(variable: Variable[Any]) -> str:
    """The extension that a variable is of; others are the kind's own."""
    return variable.name.partition(".")[0] if "." in variable.name else "its own"


def _of_each(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counted.most_common())


def digest(data: Mapping[str, Any]) -> str:
    """What stands for plain data in comparisons: 64 bits of BLAKE2b over sorted JSON, in hex."""
    text = msgspec.json.encode(data, order="deterministic")
    return hashlib.blake2b(text, digest_size=8).hexdigest()
