"""Between parents, beside what is seen: asks for room go up, what people ask for comes down."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from haptera.core.state.limits import MS
from haptera.core.state.side import Side
from haptera.core.sync.peers import Peer, Tier
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Asked,
    HandedDown,
    NumberedRequest,
    Released,
    ReportAnswer,
    Reported,
    ToldFromAbove,
)
from haptera.model.messages import Permit, ReportNotes, RoomAsk

# For so long, in H, a parent goes by what the one above answered to a report, from its sending on.
HEEDS_ABOVE_H: Final = 2
# Of what people ask, so much goes down in one answer.
HANDED_MAX: Final = 1_000
# For so long, in H, a request stands that nobody has heeded: it is for now. A node needs half of
# that to move to another parent, and a parent less to be started again.
STANDS_H: Final = 12
# Asks for room that are taken from one parent below; its own budgets let it ask for far fewer.
ASKS_MAX: Final = 10_000


class StandingRequest(NamedTuple):
    """One that is handed down until it was heeded, or its time is over."""

    number: int
    until: int


def subject_of(request: HandedDown) -> EntityId | None:
    """The entity that it is about; None: all."""
    match request:
        case Asked(entity):
            return entity
        case Released(node):
            return None if node is None else node_id(node)


def asked_of(request: HandedDown) -> str | None:
    """The node that it is about; None: all."""
    entity = subject_of(request)
    return None if entity is None else entity.node


class ParentsBelow:
    """What each parent below says beside what is seen, and what people ask of it.

    What is asked of a node is handed down by whichever parent it is reached through, until it was
    heeded where the node is kept. What is asked of all is dropped for a parent that falls silent.
    """

    def __init__(self, side: Side) -> None:
        self._side = side
        self._peers: dict[str, Peer] = {}
        self._latest: dict[str, ReportNotes] = {}
        # By the parent that is to heed them; under None those of nodes that nobody reports on.
        self._handed: dict[str | None, dict[HandedDown, StandingRequest]] = {}
        self._count = 0

    def get(self, parent: str) -> Peer | None:
        """What it asks for, and whether it is there; None: it never reported."""
        return self._peers.get(parent)

    def reports(self, parent: str) -> bool:
        """Whether it is there."""
        peer = self._peers.get(parent)
        return peer is not None and peer.tier is not Tier.LOST

    def receive(self, report: Reported, leads: Callable[[EntityId], bool]) -> None:
        """Take over what a report says beside what is seen, of what that parent `leads`."""
        parent, notes = report.parent, report.notes
        peer = self._peers.setdefault(parent, Peer(parent, 0, report.arrived_at))
        peer.silent_since, peer.tier = report.arrived_at, Tier.FRESH
        if notes is None or self._is_overtaken(parent, notes):
            return
        self._latest[parent] = notes
        asks = tuple(one for one in notes.room_asks[:ASKS_MAX] if leads(one.entity))
        if notes.unsure is None:
            peer.room_asks, peer.heard_at = asks, report.arrived_at
        else:
            named = {one.entity for one in asks}
            peer.room_asks = (*asks, *(one for one in peer.room_asks if one.entity not in named))
        if notes.heeded_boot == self._side.instance:
            self._keep(parent, lambda _, standing: standing.number > notes.heeded)

    def silence(self, parent: str) -> None:
        """It has not reported for too long."""
        self._keep(parent, lambda request, _: asked_of(request) is not None)
        if (peer := self._peers.get(parent)) is not None:
            peer.tier = Tier.LOST

    def hand_down(self, parent: str | None, request: HandedDown, until: int) -> None:
        """A person asks this of something that the parent, or one below it, keeps."""
        self.drop(request)
        self._put(parent, request, until)

    def hand_to_all(self, parents: Iterable[str], request: HandedDown, until: int) -> None:
        """A person asks this of all these, and of all that is below them."""
        for parent in parents:
            self._put(parent, request, until)

    def there(self) -> list[str]:
        """Those that report."""
        return [parent for parent in self._peers if self.reports(parent)]

    def stands(self, request: HandedDown) -> bool:
        """Whether anybody below has not heeded it yet."""
        return any(request in handed for handed in self._handed.values())

    def drop(self, request: HandedDown) -> None:
        """Nobody below has to heed it any more."""
        for handed in self._handed.values():
            handed.pop(request, None)

    def standing(self, now: int) -> list[tuple[str | None, HandedDown, int]]:
        """What is to be heeded yet: by whom, and until when; what is older is dropped."""
        for parent in [*self._handed]:
            self._keep(parent, lambda _, standing: now < standing.until)
        return [
            (parent, request, standing.until)
            for parent, handed in self._handed.items()
            for request, standing in handed.items()
        ]

    def answer(self, parent: str, permits: tuple[Permit, ...], now: int) -> ReportAnswer:
        """What is said to its last report."""
        handed = sorted(self._numbered(parent, now), key=lambda one: one.number)[:HANDED_MAX]
        return ReportAnswer(self._side.instance, tuple(handed), permits)

    def _numbered(self, parent: str, now: int) -> Iterator[NumberedRequest]:
        for request, standing in self._handed.get(parent, {}).items():
            left_ms = (standing.until - now) // MS
            if left_ms > 0:
                yield NumberedRequest(standing.number, request, left_ms)

    def _put(self, parent: str | None, request: HandedDown, until: int) -> None:
        self._count += 1
        self._handed.setdefault(parent, {})[request] = StandingRequest(self._count, until)

    def _keep(
        self, parent: str | None, stays: Callable[[HandedDown, StandingRequest], bool]
    ) -> None:
        handed = self._handed.pop(parent, {})
        if kept := {one: standing for one, standing in handed.items() if stays(one, standing)}:
            self._handed[parent] = kept

    def _is_overtaken(self, parent: str, notes: ReportNotes) -> bool:
        latest = self._latest.get(parent)
        return latest is not None and notes.boot == latest.boot and notes.number <= latest.number


class ParentAbove:
    """Of a parent below another: what it says in its reports, and what it is answered."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._reports = 0
        self._answer = ReportAnswer(0)
        self._sent_at: int | None = None
        # Of what that process hands down: how far it was taken, and what may not be done yet.
        self._taken = 0
        self._open: dict[int, HandedDown] = {}

    def notes(
        self,
        room_asks: tuple[RoomAsk, ...],
        unsure: str | None,
        stands: Callable[[HandedDown], bool],
    ) -> ReportNotes:
        """What the next report says beside what is seen; `stands` tells what is not heeded yet.

        So a request is not heeded before those below have heeded it: who dies in between has not.
        """
        self._reports += 1
        self._open = {number: one for number, one in self._open.items() if stands(one)}
        return ReportNotes(
            self._side.instance,
            self._reports,
            room_asks,
            unsure,
            self._answer.boot,
            min(self._open, default=self._taken + 1) - 1,
        )

    def receive(self, event: ToldFromAbove) -> tuple[NumberedRequest, ...]:
        """Take an answer over; tells what of that which people ask is new."""
        answer = event.answer
        if answer.boot != self._answer.boot:
            self._taken, self._open = 0, {}
        self._answer, self._sent_at = answer, event.sent_at
        new = tuple(one for one in answer.handed if one.number > self._taken)
        self._open |= {one.number: one.request for one in new}
        self._taken = max((one.number for one in new), default=self._taken)
        return new

    def permits(self, now: int) -> tuple[Permit, ...] | None:
        """What the parent above says now; None where it has been silent."""
        heeds_ns = HEEDS_ABOVE_H * self._side.hello_ns
        if self._sent_at is None or now - self._sent_at > heeds_ns:
            return None
        return self._answer.permits
