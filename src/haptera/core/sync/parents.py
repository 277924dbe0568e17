"""Between parents, beside what is seen: asks for room go up, what people ask for comes down."""

from collections.abc import Callable
from typing import Final

from haptera.core.state.side import Side
from haptera.core.sync.peers import Peer, Tier
from haptera.model.entity import EntityId
from haptera.model.events import HandedDown, ReportAnswer, Reported, ToldFromAbove
from haptera.model.messages import Permit, ReportNotes, RoomAsk

# For so long, in H, a parent goes by what the one above answered to a report, from its sending on.
HEEDS_ABOVE_H: Final = 2
# Of what people ask, so much goes down in one answer.
HANDED_MAX: Final = 1_000
# Asks for room that are taken from one parent below; its own budgets let it ask for far fewer.
ASKS_MAX: Final = 10_000


class ParentsBelow:
    """What each parent below says beside what is seen, and what people ask of it.

    What is asked is handed down until it was heeded, and dropped where that parent falls silent:
    an override is for now.
    """

    def __init__(self, side: Side) -> None:
        self._side = side
        self._peers: dict[str, Peer] = {}
        self._latest: dict[str, ReportNotes] = {}
        self._handed: dict[str, dict[HandedDown, int]] = {}
        self._count = 0

    def get(self, parent: str) -> Peer | None:
        """What it asks for, and whether it is there; None: it never reported."""
        return self._peers.get(parent)

    def reports(self, parent: str) -> bool:
        """Whether it is there."""
        peer = self._peers.get(parent)
        return peer is not None and peer.tier is not Tier.LOST

    def take(self, report: Reported, leads: Callable[[EntityId], bool]) -> None:
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
            handed = self._handed.get(parent, {})
            self._handed[parent] = {one: n for one, n in handed.items() if n > notes.heeded}

    def silence(self, parent: str) -> None:
        """It has not reported for too long."""
        self._handed.pop(parent, None)
        if (peer := self._peers.get(parent)) is not None:
            peer.tier = Tier.LOST

    def hand_down(self, parent: str, request: HandedDown) -> None:
        """A person asks this of something that the parent, or one below it, keeps."""
        if self.reports(parent):
            self._count += 1
            self._handed.setdefault(parent, {})[request] = self._count

    def hand_to_all(self, request: HandedDown) -> None:
        """A person asks this of all."""
        for parent in self._peers:
            self.hand_down(parent, request)

    def answer(self, parent: str, permits: tuple[Permit, ...]) -> ReportAnswer:
        """What is said to its last report."""
        handed = sorted(self._handed.get(parent, {}).items(), key=lambda one: one[1])[:HANDED_MAX]
        number = handed[-1][1] if handed else 0
        return ReportAnswer(self._side.instance, number, tuple(one for one, _ in handed), permits)

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
        self._heeded = 0

    def notes(self, room_asks: tuple[RoomAsk, ...], unsure: str | None) -> ReportNotes:
        """What the next report says beside what is seen."""
        self._reports += 1
        return ReportNotes(
            self._side.instance,
            self._reports,
            room_asks,
            unsure,
            self._answer.boot,
            self._heeded,
        )

    def take(self, event: ToldFromAbove) -> tuple[HandedDown, ...]:
        """Take an answer over; tells what of that which people ask is new."""
        answer = event.answer
        heeded = self._heeded if answer.boot == self._answer.boot else 0
        self._answer, self._sent_at = answer, event.sent_at
        self._heeded = max(heeded, answer.number)
        # Among them may be one that was heeded: to try again twice harms nobody.
        return answer.handed if answer.number > heeded else ()

    def permits(self, now: int) -> tuple[Permit, ...] | None:
        """What the parent above says now; None where it has been silent."""
        heeds_ns = HEEDS_ABOVE_H * self._side.hello_ns
        if self._sent_at is None or now - self._sent_at > heeds_ns:
            return None
        return self._answer.permits
