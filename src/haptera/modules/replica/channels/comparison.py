"""A trial's outputs beside those of its group's leader: each with the one it belongs to; pure.

Both come in the order of their positions, each in its own time. So what one side has not said by
the time that it says something later is missing there, and of two that belong together the later
one finds the other waiting.
"""

from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

import msgspec

from haptera.kinds.group import OutputComparison
from haptera.kinds.replica import TrialCounts
from haptera.modules.replica.channels.outbox import (
    BEGINNING,
    RING_MAX,
    NumberedOutput,
    OutputPosition,
)

# So many differences are kept, the first ones, and so much of each output in them.
KEPT_MAX: Final = 16
KEPT_BYTES_MAX: Final = 256
AS_IT_IS: Final = OutputComparison()
NOTHING_COUNTED: Final = TrialCounts()
# Of no output: it comes after all that are said of one message.
_ALL: Final = 1 << 63


class TrialDifference(NamedTuple):
    """An output of which the trial says something else; None: nothing."""

    position: OutputPosition
    trial: bytes | None
    leader: bytes | None

    @property
    def at(self) -> str:
        """After which message of the input, and which one since."""
        return f"{self.position.number}.{self.position.nth}"


class _Place(NamedTuple):
    """The outputs that belong together: by a key, and which with that key, or by their position."""

    number: int
    key: bytes
    nth: int


@dataclass(slots=True)
class _Side:
    """Messages that one side has said and the other has not yet."""

    waiting: dict[_Place, NumberedOutput] = field(default_factory=dict)
    # Of the message that it answers now: how often it has named each key.
    named: dict[bytes, int] = field(default_factory=dict)
    last: OutputPosition = BEGINNING


@dataclass(slots=True)
class TrialComparison:
    """The counts of one trial replica, over all its sessions, and the first differences."""

    how: OutputComparison = AS_IT_IS
    # What was counted before this process of the module began.
    before: TrialCounts = NOTHING_COUNTED
    equal: int = 0
    different: int = 0
    kept: list[TrialDifference] = field(default_factory=list)
    since: OutputPosition = BEGINNING
    _trial: _Side = field(default_factory=_Side)
    _leader: _Side = field(default_factory=_Side)

    @property
    def has_room(self) -> bool:
        """Whether more of the leader can be kept until the trial has said as much."""
        return len(self._leader.waiting) < RING_MAX

    def begin(self, since: OutputPosition) -> None:
        """Compare what comes after this; what is known of the leader before counts no more."""
        self._forget_until(since)
        self._leader = _Side()

    def said(self, output: NumberedOutput) -> None:
        """The trial has said this; perhaps again, after a break."""
        self._add(output, self._trial, self._leader)
        if len(self._trial.waiting) > RING_MAX:
            # The leader is far behind it: what was not compared by then is not.
            self._forget_until(next(iter(self._trial.waiting.values())).position)

    def published(self, output: NumberedOutput) -> None:
        """The leader's stream holds this."""
        self._add(output, self._leader, self._trial)

    def check(self) -> None:
        """Assert what always holds."""
        assert self._trial.waiting.keys().isdisjoint(self._leader.waiting)
        assert len(self._trial.waiting) <= RING_MAX
        assert len(self.kept) == min(self.different, KEPT_MAX)

    def __str__(self) -> str:
        equal, different, first = self.before
        if first is None and self.kept:
            first = self.kept[0].at
        return str(TrialCounts(equal + self.equal, different + self.different, first))

    def _add(self, output: NumberedOutput, side: _Side, other: _Side) -> None:
        if output.position <= max(side.last, self.since):
            return
        if output.position.number > side.last.number:
            side.named.clear()
        side.last = output.position
        # What the other side has said before that, and this one has not, it will not say any more.
        waiting = other.waiting.items()
        for place, one in [*takewhile(lambda it: self._is_past(side, it[1].position), waiting)]:
            del other.waiting[place]
            self._differs(side, one)
        place = self._place(output, side)
        found = other.waiting.pop(place, None)
        if found is None and self._is_past(other, output.position):
            self._differs(other, output)
        elif found is None:
            side.waiting[place] = output
        elif self._content(found.data) == self._content(output.data):
            self.equal += 1
        else:
            self._differs(side, found, output)

    def _is_past(self, side: _Side, position: OutputPosition) -> bool:
        """True if a side says nothing more that belongs there; by a key, a message is one place."""
        return side.last.number > position.number if self.how.by else side.last > position

    def _place(self, output: NumberedOutput, side: _Side) -> _Place:
        number, nth = output.position.number, output.position.nth
        members = self._members(output.data)
        if members is None or not self.how.by:
            return _Place(number, b"", nth)
        key = _text([members.get(name) for name in self.how.by])
        nth = side.named[key] = side.named.get(key, 0) + 1
        return _Place(number, key, nth)

    def _content(self, data: bytes) -> bytes:
        """The part of an output that is compared."""
        members = self._members(data)
        if members is None:
            return data
        return _text({name: one for name, one in members.items() if name not in self.how.without})

    def _members(self, data: bytes) -> dict[str, object] | None:
        """The members of an output that is a JSON object; None: it is compared as it is."""
        if not (self.how.by or self.how.without):
            return None
        try:
            return msgspec.json.decode(data, type=dict[str, object])
        except (ValueError, RecursionError):
            return None

    def _differs(
        self, side: _Side, held: NumberedOutput, now: NumberedOutput | None = None
    ) -> None:
        """One side says `now`, or nothing, where the other one has said `held`."""
        self.different += 1
        if len(self.kept) < KEPT_MAX:
            both = [None if one is None else one.data[:KEPT_BYTES_MAX] for one in (now, held)]
            trial, leader = both if side is self._trial else reversed(both)
            self.kept.append(TrialDifference(held.position, trial, leader))

    def _forget_until(self, since: OutputPosition) -> None:
        """Compare nothing up to there; by a key, a message's outputs are compared all or none."""
        self.since = since._replace(nth=_ALL) if self.how.by else since
        waiting = self._trial.waiting.items()
        self._trial.waiting = {place: one for place, one in waiting if one.position > self.since}


def _text(value: object) -> bytes:
    """The same for the same value, however it was written; true is not 1."""
    return msgspec.json.encode(value, order="sorted")
