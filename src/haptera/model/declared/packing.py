"""An entity's state as one to four words, and numbers over all that two sides must agree on."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from haptera.model.declared.remote_schema import Numbers, numbers_of
from haptera.model.declared.schema import FLAG_BITS, WORD_BITS, Attribute, Kind, Plain, Variable
from haptera.model.facts import Method
from haptera.model.parts import Part

# A value, whether it is known (or only remembered), and how it was come by.
Held = tuple[str, bool, Method]
_WORD_MASK = (1 << WORD_BITS) - 1


class PackedField(NamedTuple):
    """Where a variable lies: its number at `shift`, above it the remembered bit, the inferred."""

    name: str
    shift: int
    bits: int
    numbers: Mapping[str, int]
    values: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class PackedLayout:
    """Where each mutation variable of a kind lies in its words; by name, so in any order."""

    fields: tuple[PackedField, ...]
    words: int

    def can_hold(self, name: str, value: str | int) -> bool:
        """Whether this value has a number of its own; unknown is said by absence."""
        return any(
            field.name == name and isinstance(value, str) and field.numbers.get(value, 0) > 0
            for field in self.fields
        )


class Unpacked(NamedTuple):
    """What words hold; `unread` names the variables whose number or flags say nothing to us."""

    values: dict[str, Held]
    unread: tuple[str, ...]


def layout_of(kind: Kind) -> PackedLayout:
    """Lay out a kind; a variable may lie across two words."""
    return layout_of_numbers(numbers_of(kind))


def layout_of_numbers(variables: Numbers) -> PackedLayout:
    """Lay out a kind from the numbers of its variables' values alone."""
    fields: list[PackedField] = []
    shift = 0
    for name, numbers in sorted(variables.items()):
        values = {number: value for value, number in numbers.items()}
        bits = max(numbers.values(), default=0).bit_length()
        fields.append(PackedField(name, shift, bits, numbers, values))
        shift += bits + FLAG_BITS
    return PackedLayout(tuple(fields), -(-shift // WORD_BITS))


def pack(layout: PackedLayout, state: Mapping[str, Held]) -> tuple[int, ...]:
    """Pack values by name; a variable that is absent is unknown, and the other way round.

    Raises:
        ValueError: a name or a value is none of the kind's.
    """
    rest = dict(state)
    whole = 0
    for field in layout.fields:
        held = rest.pop(field.name, None)
        if held is not None:
            whole |= _packed(field, held) << field.shift
    if rest:
        raise ValueError(f"not of this kind: {', '.join(sorted(rest))}")
    return tuple((whole >> WORD_BITS * word) & _WORD_MASK for word in range(layout.words))


def unpack(layout: PackedLayout, words: Sequence[int]) -> Unpacked:
    """Read words from anywhere: what cannot be read is absent, and reported."""
    if len(words) != layout.words:
        return Unpacked({}, tuple(field.name for field in layout.fields))
    whole = sum((word & _WORD_MASK) << WORD_BITS * at for at, word in enumerate(words))
    values: dict[str, Held] = {}
    unread: list[str] = []
    for field in layout.fields:
        cell = (whole >> field.shift) & ((1 << field.bits + FLAG_BITS) - 1)
        if cell == 0:
            continue
        held = _unpacked(field, cell)
        if held is None:
            unread.append(field.name)
        else:
            values[field.name] = held
    return Unpacked(values, tuple(unread))


def _packed(field: PackedField, held: Held) -> int:
    value, known, method = held
    number = field.numbers.get(value)
    if number is None:
        raise ValueError(f"{field.name} has no value {value!r}")
    if number == 0:
        return 0
    flags = (not known) | (method is Method.INFERRED) << 1
    return number | flags << field.bits


def _unpacked(field: PackedField, cell: int) -> Held | None:
    number = cell & ((1 << field.bits) - 1)
    value = field.values.get(number)
    if value is None or number == 0:
        return None
    flags = cell >> field.bits
    return value, not flags & 1, Method.INFERRED if flags & 2 else Method.READ


def schema_digest(kinds: Iterable[Kind], parts: Iterable[Part]) -> int:
    """64 bits over kinds and parts: where two sides have the same, they plan the same chains.

    In whatever order these are declared. Within a part the order stands: the first change is the
    one that a time-out tells something of.
    """
    return _digest({_text(_kind_data(kind)) for kind in kinds}, parts)


def kind_digest(kind: Kind, parts: Iterable[Part]) -> int:
    """As `schema_digest`, over one kind, the variables of others that it names, and its parts."""
    borrowed = {_text([one.path, _declared_data(one)]) for one in kind.borrows}
    borrowed |= {_text([str(one), _declared_data(one.variable)]) for one in kind.related}
    return _digest({_text(_kind_data(kind))} | borrowed, parts)


def _digest(declared: set[bytes], parts: Iterable[Part]) -> int:
    lines = declared | {_text([type(one).__name__, msgspec.to_builtins(one)]) for one in parts}
    digest = hashlib.blake2b(digest_size=8)
    for line in sorted(lines):
        digest.update(line + b"\n")
    return int.from_bytes(digest.digest(), "big")


def _kind_data(kind: Kind) -> list[Any]:
    declared: list[Variable[Any] | Attribute | Plain] = [
        *kind.variables,
        *kind.attributes,
        *kind.plain,
    ]
    return [
        "Kind",
        kind.name,
        sorted((_declared_data(one) for one in declared), key=_text),
        sorted((*(variable.path for variable in kind.borrows), *map(str, kind.related))),
        kind.everywhere,
    ]


def _declared_data(declared: Variable[Any] | Attribute | Plain) -> list[Any]:
    match declared:
        case Variable():
            numbers = {str(value): number for value, number in declared.numbers.items()}
            return ["Variable", declared.name, numbers]
        case Attribute():
            return ["Attribute", declared.name, declared.size_bytes_max]
        case Plain():
            return ["Plain", declared.name, declared.type.__name__, declared.size_bytes_max]


def _text(data: Any) -> bytes:
    return msgspec.json.encode(data, order="deterministic")
