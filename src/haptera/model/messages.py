"""What neighbours tell each other: hellos, and the state of entities."""

from typing import Final

import msgspec

from haptera.model.answers.views import Condition
from haptera.model.entity import EntityId
from haptera.model.facts import Method
from haptera.model.parts import WITHIN_MS_MAX
from haptera.model.walltime import AgeMs

# For so long a step may be late, whatever is said by who may fall silent with what it holds.
LATE_MS_MAX: Final = 2 * WITHIN_MS_MAX


class Mark(msgspec.Struct, frozen=True, gc=False):
    """How far one layer of a node's entities is known: its last version and a digest over all.

    Desired versions are revisions of the parent's store in its `epoch`; observed ones count the
    agent's changes in its present process (`epoch` 0).
    """

    epoch: int = 0
    version: int = 0
    digest: int = 0


class SeenValue(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One observed value on its way up: how old, seen how and by whom, and what was noted of it."""

    value: str
    known: bool
    method: Method
    age_ms: AgeMs
    by: str
    note: str | None = None


class DesiredUpdate(msgspec.Struct, frozen=True, gc=False, tag="desired"):
    """What an entity should be, whole; with `gone` it is no longer declared."""

    entity: EntityId
    version: int
    values: dict[str, str | int]
    attributes: dict[str, str]
    gone: bool = False


class Standing(msgspec.Struct, frozen=True, gc=False):
    """Where an entity stands on its agent's side, for how long, and why.

    `error` is the last one, where `why` does not say it already. Between parents, `wanted` stands
    for what was desired of it when this was decided.
    """

    condition: Condition
    since_ms: AgeMs
    why: str | None = None
    error: str | None = None
    wanted: str | None = None


class ObservedUpdate(msgspec.Struct, frozen=True, gc=False, tag="observed"):
    """What an entity was seen to be, whole; `standing` where anything is desired of it."""

    entity: EntityId
    version: int
    values: dict[str, SeenValue]
    gone: bool = False
    standing: Standing | None = None


class ObservedFragment(msgspec.Struct, frozen=True, gc=False, tag="observed fragment"):
    """Some of the values that an entity was seen to have, where all take more than a datagram.

    There are `count` in all. Its condition travels by itself: in the fragment without a value.
    """

    entity: EntityId
    version: int
    values: dict[str, SeenValue]
    count: int
    standing: Standing | None = None


Update = DesiredUpdate | ObservedUpdate | ObservedFragment


class Ask(msgspec.Struct, frozen=True, gc=False):
    """A disruptive step that waits for its node's permit, or whose outcome is not known yet.

    `id` is that of the step's intent; `late_ms` how long after its call it may still take effect.
    """

    id: str
    step: str
    late_ms: AgeMs

    def __post_init__(self) -> None:
        _bound(self)


class RoomAsk(msgspec.Struct, frozen=True, gc=False):
    """A disruptive step that needs room in the budgets of the parent above, until it is over.

    `late_ms` is as of an `Ask`. Once it has `begun` it takes place, whatever its parent says. One
    that is over, and was `harmless`, takes none, and counts in no hour.
    """

    id: str
    entity: EntityId
    late_ms: AgeMs
    begun: bool = False
    harmless: bool = False

    def __post_init__(self) -> None:
        _bound(self)


class Permit(msgspec.Struct, frozen=True, gc=False):
    """What is said to an ask: that what asks may go on until it is over, or why it may not.

    A node says so that it takes up no work meanwhile, a parent that it counts what is disturbed.
    """

    id: str
    granted: bool
    text: str = ""


class ReportNotes(msgspec.Struct, frozen=True, gc=False):
    """What a parent below says beside what is seen; `number` counts the reports of one `boot`.

    `room_asks` is all that it asks room for, as far as it knows: `unsure` says why it may not know
    yet what is under way below it. It has done what `heeded_boot`, a process above, asked up to
    `heeded`.
    """

    boot: int
    number: int
    room_asks: tuple[RoomAsk, ...] = ()
    unsure: str | None = None
    heeded_boot: int = 0
    heeded: int = 0


class Measure(msgspec.Struct, frozen=True, gc=False):
    """How long a part usually takes where it runs."""

    part: str
    usual_ms: int


class Message(msgspec.Struct, frozen=True, gc=False):
    """The content of one datagram: a hello, with what changed.

    `desired` and `observed` say how far the sender holds each layer; `words` is the sending
    node's own packed state (a parent sends none). `probe` asks for a hello at once. `asks` are
    all that a parent asks of the node now, `room_asks` what an agent asks of its parent, `permits`
    all that the sender says to what it was asked; None where the datagram says nothing of them. It
    `reads` packed words of the receiver's, though
    that has another schema. `measures` are those that the receiver is not known to have.
    """

    incarnation: int
    term: int
    schema: int
    desired: Mark
    observed: Mark
    words: tuple[int, ...] = ()
    updates: tuple[Update, ...] = ()
    probe: bool = False
    asks: tuple[Ask, ...] | None = ()
    permits: tuple[Permit, ...] | None = ()
    reads: bool = False
    measures: tuple[Measure, ...] = ()
    room_asks: tuple[RoomAsk, ...] | None = ()

    def overtaken(self) -> "Message":
        """What still counts of it once a later message was heard."""
        return msgspec.structs.replace(self, asks=None, permits=None, room_asks=None)


def _bound(ask: Ask | RoomAsk) -> None:
    if ask.late_ms > LATE_MS_MAX:
        msgspec.structs.force_setattr(ask, "late_ms", LATE_MS_MAX)
