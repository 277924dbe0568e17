"""A trial's outputs beside those of its group's leader, position by position; pure.

Both come in the order of their positions, each in its own time. So the earlier of the two next ones
is missing on the other side, and those of one position are equal or differ.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

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


class TrialDifference(NamedTuple):
    """An output of which the trial says something else; None: nothing."""

    position: OutputPosition
    trial: bytes | None
    leader: bytes | None

    @property
    def at(self) -> str:
        """After which message of the input, and which one since."""
        return f"{self.position.number}.{self.position.nth}"


@dataclass(slots=True)
class TrialComparison:
    """The counts of one trial replica, over all its sessions, and the first differences."""

    equal: int = 0
    different: int = 0
    kept: list[TrialDifference] = field(default_factory=list)
    since: OutputPosition = BEGINNING
    _said: deque[NumberedOutput] = field(default_factory=deque)
    _published: deque[NumberedOutput] = field(default_factory=deque)

    @property
    def has_room(self) -> bool:
        """Whether more of the leader can be kept until the trial has said as much."""
        return len(self._published) < RING_MAX

    def begin(self, since: OutputPosition) -> None:
        """Compare what comes after this; what is known of the leader before counts no more."""
        self.since = since
        self._published.clear()
        while self._said and self._said[0].position <= since:
            self._said.popleft()

    def said(self, output: NumberedOutput) -> None:
        """The trial has said this; perhaps again, after a break."""
        last = self._said[-1].position if self._said else self.since
        if output.position > last:
            self._said.append(output)
            if len(self._said) > RING_MAX:
                # The leader is far behind it: what was not compared by then is not.
                self.since = self._said.popleft().position
            self._compare()

    def published(self, output: NumberedOutput) -> None:
        """The leader's stream holds this."""
        last = self._published[-1].position if self._published else self.since
        if output.position > last:
            self._published.append(output)
            self._compare()

    def check(self) -> None:
        """Assert what always holds."""
        assert not self._said or not self._published
        assert len(self._said) <= RING_MAX
        assert len(self.kept) == min(self.different, KEPT_MAX)

    def __str__(self) -> str:
        first = self.kept[0].at if self.kept else None
        return str(TrialCounts(self.equal, self.different, first))

    def _compare(self) -> None:
        while self._said and self._published:
            trial, leader = self._said[0], self._published[0]
            self.since = min(trial.position, leader.position)
            if trial == leader:
                self.equal += 1
            else:
                self.different += 1
                self._keep(trial, leader)
            for queue in (self._said, self._published):
                if queue[0].position == self.since:
                    queue.popleft()

    def _keep(self, trial: NumberedOutput, leader: NumberedOutput) -> None:
        if len(self.kept) < KEPT_MAX:
            both = (
                one.data[:KEPT_BYTES_MAX] if one.position == self.since else None
                for one in (trial, leader)
            )
            self.kept.append(TrialDifference(self.since, *both))
