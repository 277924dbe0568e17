"""One entity's state as the content of a section: enums packed where both sides number alike."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final

import msgspec

from haptera.model.answers.views import Condition
from haptera.model.declared.packing import (
    Held,
    PackedLayout,
    layout_of,
    layout_of_numbers,
    pack,
    unpack,
)
from haptera.model.declared.remote_schema import ToldSchema
from haptera.model.declared.schema import (
    DECLARED_NAME_BYTES_MAX,
    DIGEST_BYTES_MAX,
    VARIABLES_MAX,
    WORDS_MAX,
    Kind,
)
from haptera.model.declared.told_bytes import text_bytes
from haptera.model.entity import EntityId, check_name
from haptera.model.errors import HapteraError
from haptera.model.facts import Method
from haptera.model.messages import (
    DesiredUpdate,
    ObservedFragment,
    ObservedUpdate,
    SeenValue,
    Standing,
    Update,
)
from haptera.model.policy import GIVEN_UP
from haptera.model.walltime import AgeMs
from haptera.wire.frame import CONTENT_BYTES_MAX, FrameFault, Reject

DESIRED: Final = 1
OBSERVED: Final = 2
FRAGMENT: Final = 7
# Longer observed values, names of who saw them, and words on where an entity stands, are cut; the
# last character then says so.
VALUE_BYTES_MAX: Final = DIGEST_BYTES_MAX
BY_BYTES_MAX: Final = 32
WORDS_BYTES_MAX: Final = 160
# A note is sent as far as the section has room beside all else.
NOTE_BYTES_MAX: Final = 100
NOTE_BYTES_MIN: Final = 16
# How many that saw an entity are named.
BY_NAMES_MAX: Final = 8
CUT: Final = "…"
# What the head of a map takes, beyond the byte that an empty one does.
_MAP_BYTES: Final = 2

_Whole = Annotated[int, msgspec.Meta(ge=0)]


class _Desired(msgspec.Struct, frozen=True, gc=False, array_like=True):
    kind: str
    name: str
    node: str | None
    version: _Whole
    gone: bool
    words: list[_Whole]
    values: dict[str, str | int]
    attributes: dict[str, str]


class _Standing(msgspec.Struct, frozen=True, gc=False, array_like=True):
    condition: Condition
    since_ms: AgeMs
    why: str | None
    error: str | None


class _Observed(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """`provenance`: how old each value is, and the place in `by` of who saw it.

    First of the values in `words`, by name of the variable, then of the `named`, in their order.
    """

    kind: str
    name: str
    node: str | None
    version: _Whole
    gone: bool
    words: list[_Whole]
    named: dict[str, tuple[str, bool, Method]]
    provenance: list[tuple[AgeMs, _Whole]]
    by: list[str]
    standing: _Standing | None = None
    notes: dict[str, str] = {}


class _Fragment(msgspec.Struct, frozen=True, gc=False, array_like=True):
    count: Annotated[int, msgspec.Meta(ge=0, le=VARIABLES_MAX)]
    observed: _Observed


_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")
_DESIRED: Final = msgspec.msgpack.Decoder(_Desired)
_OBSERVED: Final = msgspec.msgpack.Decoder(_Observed)
_FRAGMENT: Final = msgspec.msgpack.Decoder(_Fragment)


class Codec:
    """Updates to bytes and back, for the kinds of this side; `schema` is its schema digest."""

    def __init__(self, kinds: Iterable[Kind], schema: int) -> None:
        self.schema = schema
        self._layouts: dict[str, PackedLayout] = {}
        # By neighbour: the digest that it gave its schema, and how that numbers.
        self._known: dict[str, tuple[int, dict[str, PackedLayout]]] = {}
        for kind in kinds:
            self._layouts[kind.name] = layout_of(kind)

    def learn(self, peer: str, told: ToldSchema) -> bool:
        """Read this neighbour's words by its schema from now on; False where that cannot be.

        By its own only: what it calls its schema says nothing of the words of others.
        """
        layouts = {name: layout_of_numbers(numbers) for name, numbers in told.kinds.items()}
        if any(layout.words > WORDS_MAX for layout in layouts.values()):
            return False
        if told.digest != self.schema:
            # Neighbours of one schema share what is kept of it.
            others = (one for one in self._known.values() if one == (told.digest, layouts))
            self._known[peer] = next(others, (told.digest, layouts))
        return True

    def encode(
        self, update: DesiredUpdate | ObservedUpdate, peer_schema: int | None
    ) -> Iterator[tuple[int, bytes]]:
        """The type and content of each section; named values where the peer may number otherwise.

        What was observed is one section, if it fits. Else where the entity stands has a section of
        its own, and the values as many as they need.
        """
        layout = self._layouts[update.entity.kind] if peer_schema == self.schema else None
        if isinstance(update, DesiredUpdate):
            yield DESIRED, _ENCODER.encode(_desired(update, layout))
            return
        told = _observed(update, layout)
        content = _ENCODER.encode(told)
        if len(content) > CONTENT_BYTES_MAX:
            yield from _fragments(update, layout)
            return
        if notes := _notes(update, CONTENT_BYTES_MAX - len(content)):
            content = _ENCODER.encode(msgspec.structs.replace(told, notes=notes))
        yield OBSERVED, content

    def decode(
        self, section: int, content: bytes, schema: int, peer: str
    ) -> Update | Reject | None:
        """The update in a section from a neighbour of this schema; None where it tells us nothing.

        That is a section of an unknown type, or words whose numbers we do not know.
        """
        try:
            if section == DESIRED:
                return self._read_desired(_DESIRED.decode(content), schema, peer)
            if section == OBSERVED:
                return self._read_observed(_OBSERVED.decode(content), schema, peer)
            if section == FRAGMENT:
                return self._read_fragment(_FRAGMENT.decode(content), schema, peer)
        except (ValueError, RecursionError, HapteraError):
            return Reject(FrameFault.SECTION)
        return None

    def _read_desired(self, told: _Desired, schema: int, peer: str) -> Update | Reject | None:
        held = self._unpacked(told, schema, peer)
        if not isinstance(held, Mapping):
            return held
        values = {**told.values, **{name: value for name, (value, _, _) in held.items()}}
        return DesiredUpdate(_entity(told), told.version, values, told.attributes, told.gone)

    def _read_fragment(self, told: _Fragment, schema: int, peer: str) -> Update | Reject | None:
        one = self._read_observed(told.observed, schema, peer)
        if not isinstance(one, ObservedUpdate):
            return one
        if any(_is_longer(name, seen) for name, seen in one.values.items()):
            # These are kept until all have come, so no stranger decides how much that is.
            return Reject(FrameFault.SECTION)
        return ObservedFragment(one.entity, one.version, one.values, told.count, one.standing)

    def _read_observed(
        self, told: _Observed, schema: int, peer: str
    ) -> ObservedUpdate | Reject | None:
        held = self._unpacked(told, schema, peer)
        if not isinstance(held, Mapping):
            return held
        seen = {**held, **told.named}
        if len(seen) != len(told.provenance) or any(
            by >= len(told.by) for _, by in told.provenance
        ):
            return Reject(FrameFault.SECTION)
        values = {
            name: SeenValue(*what, age_ms, told.by[by], told.notes.get(name))
            for (name, what), (age_ms, by) in zip(seen.items(), told.provenance, strict=True)
        }
        standing = None if told.standing is None else _standing(told.standing)
        return ObservedUpdate(_entity(told), told.version, values, told.gone, standing)

    def _unpacked(
        self, told: _Desired | _Observed, schema: int, peer: str
    ) -> Mapping[str, Held] | Reject | None:
        if not told.words:
            return {}
        digest, layouts = self.schema, self._layouts
        if schema != self.schema:
            digest, layouts = self._known.get(peer, (self.schema, {}))
        if digest != schema:
            return None
        layout = layouts.get(told.kind)
        if layout is None:
            return Reject(FrameFault.SECTION)
        read = unpack(layout, told.words)
        return Reject(FrameFault.SECTION) if read.unread else read.values


def _is_longer(name: str, seen: SeenValue) -> bool:
    """True if the name or the value exceeds what a neighbour may send."""
    return (
        len(name) > DECLARED_NAME_BYTES_MAX
        or len(seen.value) > VALUE_BYTES_MAX
        or len(seen.by) > BY_BYTES_MAX
        or len(seen.note or "") > NOTE_BYTES_MAX
    )


def _desired(update: DesiredUpdate, layout: PackedLayout | None) -> _Desired:
    held: dict[str, Held] = {}
    if layout is not None:
        for name, value in update.values.items():
            if layout.can_hold(name, value):
                held[name] = (str(value), True, Method.READ)
    entity = update.entity
    return _Desired(
        entity.kind,
        entity.name,
        entity.node,
        update.version,
        update.gone,
        _words(layout, held),
        {name: value for name, value in update.values.items() if name not in held},
        update.attributes,
    )


def _observed(update: ObservedUpdate, layout: PackedLayout | None) -> _Observed:
    held: dict[str, Held] = {}
    named: dict[str, Held] = {}
    for name, seen in sorted(update.values.items()):
        if layout is not None and layout.can_hold(name, seen.value):
            held[name] = (seen.value, seen.known, seen.method)
        else:
            named[name] = (_cut(seen.value, VALUE_BYTES_MAX), seen.known, seen.method)
    by = _told_by(update)
    entity = update.entity
    return _Observed(
        entity.kind,
        entity.name,
        entity.node,
        update.version,
        update.gone,
        _words(layout, held),
        named,
        [(update.values[name].age_ms, _place(by, update.values[name])) for name in (*held, *named)],
        by,
        None if update.standing is None else _told_standing(update.standing),
    )


def _fragments(update: ObservedUpdate, layout: PackedLayout | None) -> Iterator[tuple[int, bytes]]:
    """The header of an update, then its values, halved until each has room for its notes, too."""
    count = len(update.values)
    stands = _observed(msgspec.structs.replace(update, values={}), layout)
    yield FRAGMENT, _ENCODER.encode(_Fragment(count, stands))
    left = [sorted(update.values)]
    while left:
        names = left.pop()
        some = ObservedUpdate(
            update.entity, update.version, {name: update.values[name] for name in names}
        )
        # Notes of so many bytes make a fragment too long, so they are sent whole.
        notes = _notes(some, CONTENT_BYTES_MAX)
        told = msgspec.structs.replace(_observed(some, layout), notes=notes)
        content = _ENCODER.encode(_Fragment(count, told))
        if len(content) <= CONTENT_BYTES_MAX:
            yield FRAGMENT, content
        else:
            left += [names[len(names) // 2 :], names[: len(names) // 2]]


def _notes(update: ObservedUpdate, room: int) -> dict[str, str]:
    """What was noted of its values, by their names, as far as this room goes."""
    notes: dict[str, str] = {}
    room -= _MAP_BYTES
    for name, seen in sorted(update.values.items()):
        left = room - text_bytes(len(name)) - text_bytes(NOTE_BYTES_MAX) + NOTE_BYTES_MAX
        if seen.note is not None and left >= NOTE_BYTES_MIN:
            notes[name] = note = _cut(seen.note, min(left, NOTE_BYTES_MAX))
            room = left - len(note.encode())
    return notes


def _told_standing(one: Standing) -> _Standing:
    why, error = (None if text is None else _cut_words(text) for text in (one.why, one.error))
    return _Standing(one.condition, one.since_ms, why, error)


def _standing(told: _Standing) -> Standing:
    return Standing(told.condition, told.since_ms, told.why, told.error)


def _words(layout: PackedLayout | None, held: Mapping[str, Held]) -> list[int]:
    return list(pack(layout, held)) if layout is not None and held else []


def _told_by(update: ObservedUpdate) -> list[str]:
    """Who saw these values, as far as there is room; the cut stands for the rest."""
    names = sorted({_cut(seen.by, BY_BYTES_MAX) for seen in update.values.values()})
    return names if len(names) <= BY_NAMES_MAX else [*names[: BY_NAMES_MAX - 1], CUT]


def _place(by: list[str], seen: SeenValue) -> int:
    cut = _cut(seen.by, BY_BYTES_MAX)
    return by.index(cut) if cut in by else len(by) - 1


def _cut_words(text: str) -> str:
    """The words, or their beginning; and in any case that something was given up."""
    at = text.rfind(GIVEN_UP)
    room = WORDS_BYTES_MAX - len(text[at:].encode())
    if at < 0 or room < WORDS_BYTES_MAX // 2:
        return _cut(text, WORDS_BYTES_MAX)
    return _cut(text[:at], room) + text[at:]


def _cut(text: str, bytes_max: int) -> str:
    """The text, or its beginning and the sign that it was cut."""
    encoded = text.encode()
    if len(encoded) <= bytes_max:
        return text
    return encoded[: bytes_max - len(CUT.encode())].decode(errors="ignore") + CUT


def _entity(told: _Desired | _Observed) -> EntityId:
    for name in (told.kind, told.name):
        check_name(name)
    if told.node is not None:
        check_name(told.node)
    return EntityId(told.kind, told.name, told.node)
