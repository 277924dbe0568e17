"""Two sessions under every fault of a network and of two crashing hosts, against a plain model.

The model knows what no session can: when each datagram was sent, and by which process. From that
alone it says what may be accepted; the sessions have only keys, windows and echoes.
"""

from dataclasses import dataclass
from random import Random
from uuid import UUID

import pytest

from haptera.wire.frame import DatagramType
from haptera.wire.seal import Agreement, Greet, Opened, SealRole, Session

AGREEMENT = Agreement(bytes(range(32)), UUID(int=1), UUID(int=2), 1, 11, 22)
HELLO_NS = 1_000_000_000
STEPS = 120
SEEDS = 150


@dataclass(frozen=True)
class Sent:
    """A datagram, with what only the model knows of it."""

    data: bytes
    by: int  # which end
    boot: int
    at_step: int
    body: bytes


class History:
    """Two ends, and a network that keeps, repeats and reorders all that was ever sent."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.step = 0
        self.now = 0
        self.next_boot = 100
        self.sent: list[Sent] = []
        self.began = [0, 0]
        self.accepted: list[set[bytes]] = [set(), set()]
        self.newest_boot = [0, 0]
        self.boots = [0, 0]
        self.accepted_count = 0
        self.take_ups = 0
        self.ends = [self.start(0, None), self.start(1, None)]

    def start(self, end: int, saved: int | None) -> Session:
        """A process begins: boot-ids grow, so that the model can tell old from new."""
        self.next_boot += 1
        self.boots[end] = self.next_boot
        self.began[end] = self.step
        return Session(AGREEMENT, (SealRole.PARENT, SealRole.CHILD)[end], self.next_boot, saved)

    def restart(self, end: int) -> None:
        """What was saved may be up to date, or lost."""
        saved = self.rng.choice([self.ends[end].peer_boot, None])
        self.ends[end] = self.start(end, saved)

    def say(self, end: int) -> Sent:
        body = b"%d from %d" % (self.step, end)
        return self.put(end, self.ends[end].seal(body), body)

    def put(self, end: int, data: bytes, body: bytes) -> Sent:
        self.sent.append(Sent(data, end, self.boots[end], self.step, body))
        return self.sent[-1]

    def arrive(self, sent: Sent) -> Opened | None:
        """A datagram reaches the other end; what that accepts must be what the model allows."""
        end = 1 - sent.by
        result = self.ends[end].open(sent.data, self.now)
        if isinstance(result, Greet):
            self.put(end, self.ends[end].seal_hi(result), b"")
        if not isinstance(result, Opened):
            return None
        assert result.body == sent.body
        assert result.boot == sent.boot
        assert sent.data not in self.accepted[end], "accepted twice"
        assert sent.at_step >= self.began[end], "from before this process"
        assert sent.boot >= self.newest_boot[end], "an old process returned"
        self.take_ups += sent.boot > self.newest_boot[end]
        self.accepted[end].add(sent.data)
        self.newest_boot[end] = sent.boot
        self.accepted_count += 1
        return result

    def fault_or_not(self) -> None:
        """One thing happens: speech, arrival of something recent or old, a restart, time."""
        self.step += 1
        end = self.rng.randrange(2)
        what = self.rng.random()
        if what < 0.35:
            self.say(end)
        elif what < 0.75 and self.sent:
            self.arrive(self.rng.choice(self.sent[-8:]))
        elif what < 0.90 and self.sent:
            self.arrive(self.rng.choice(self.sent))
        elif what < 0.95:
            self.restart(end)
        else:
            self.now += self.rng.randrange(HELLO_NS)

    def round_of_hellos(self) -> list[bool]:
        """Both say hello, and all that is then said arrives at once; who was heard?"""
        self.now += HELLO_NS
        self.step += 1
        hellos = [self.say(0), self.say(1)]
        heard = [False, False]
        waiting = list(hellos)
        while waiting:
            before = len(self.sent)
            sent = waiting.pop(0)
            opened = self.arrive(sent)
            heard[sent.by] |= opened is not None and opened.type is DatagramType.HELLO
            waiting += self.sent[before:]
        return heard


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_accepted_twice_or_late_and_both_talk_within_three_hellos(seed: int) -> None:
    history = History(Random(seed))

    for _ in range(STEPS):
        history.fault_or_not()

    rounds = [history.round_of_hellos() for _ in range(3)]
    assert rounds[-1] == [True, True]
    assert history.ends[0].peer_boot == history.boots[1]
    assert history.ends[1].peer_boot == history.boots[0]


def test_most_histories_are_interesting() -> None:
    busy = 0
    for seed in range(SEEDS):
        history = History(Random(seed))
        for _ in range(STEPS):
            history.fault_or_not()
        busy += history.accepted_count >= 5 and history.take_ups >= 2

    assert busy > SEEDS / 2
