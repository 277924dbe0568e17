"""Outboxes against a plain stream: whoever dies, wakes or is not answered, each output once."""

from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from haptera.modules.replica.channels.outbox import (
    BEGINNING,
    EMPTY,
    Confirm,
    Effect,
    NumberedOutput,
    Outbox,
    OutputPosition,
    PublishOutput,
    ReadEnd,
    StreamEnd,
)


def at(number: int, nth: int = 1) -> OutputPosition:
    return OutputPosition(0, 0, number, nth)


def output(number: int) -> NumberedOutput:
    return NumberedOutput(at(number), b"%d" % number)


def test_a_leader_reads_the_end_then_publishes_what_the_stream_lacks() -> None:
    box = Outbox()
    assert [box.emitted(output(number)) for number in (1, 2, 3)] == [[], [], []]

    assert box.led(5) == [ReadEnd()]
    assert box.ended(StreamEnd(7, 4, at(1))) == [
        Confirm(at(1)),
        PublishOutput(output(2), 5, after=7),
    ]
    assert box.stored(8) == [Confirm(at(2)), PublishOutput(output(3), 5, after=8)]


def test_those_in_flight_name_the_one_before_them() -> None:
    box = Outbox()
    for number in (1, 2, 3, 4):
        box.emitted(output(number))
    box.led(1)
    box.ended(EMPTY)

    assert box.stored(1) == [
        Confirm(at(1)),
        PublishOutput(output(2), 1, after=1),
        PublishOutput(output(3), 1, after=at(2)),
    ]


def test_after_a_refusal_the_end_is_read_once_all_in_flight_are_answered() -> None:
    box = Outbox()
    for number in (1, 2, 3):
        box.emitted(output(number))
    box.led(1)
    box.ended(EMPTY)
    box.stored(1)

    assert (box.refused(), box.refused()) == ([], [ReadEnd()])
    assert box.ended(StreamEnd(2, 2, at(2))) == [Confirm(at(2))]  # a later epoch has begun


def test_what_the_stream_holds_is_confirmed_and_not_kept() -> None:
    box = Outbox()
    box.ended(StreamEnd(9, 1, at(4)))

    assert box.emitted(output(3)) == [Confirm(at(4))]
    assert not box.ring


@dataclass
class Stream:
    """A stream that stores only after what is named, as the carrier does."""

    held: list[tuple[int, OutputPosition]] = field(default_factory=list)

    @property
    def end(self) -> StreamEnd:
        epoch, position = self.held[-1] if self.held else (0, BEGINNING)
        return StreamEnd(len(self.held), epoch, position)

    def store(self, one: PublishOutput) -> int | None:
        here = (one.epoch, one.output.position)
        if here in self.held:
            return self.held.index(here) + 1
        after = len(self.held) if isinstance(one.after, int) else self.held[-1:]
        if after != (one.after if isinstance(one.after, int) else [(one.epoch, one.after)]):
            return None
        self.held.append(here)
        return len(self.held)


@dataclass
class Replica:
    box: Outbox
    said: int = 0
    sent: deque[PublishOutput] = field(default_factory=deque)
    reads: bool = False

    def do(self, effects: list[Effect]) -> None:
        self.box.check()
        for one in effects:
            if isinstance(one, PublishOutput):
                self.sent.append(one)
            elif isinstance(one, ReadEnd):
                self.reads = True


SAID_AT_ONCE = 3
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("say", "work", "work", "answer", "answer", "lose", "lead", "die", "late")),
        st.integers(0, 1),
    ),
    min_size=20,
    max_size=100,
)


class World:
    """Two replicas; each says 1, 2, 3 …, and again from 1 after it died."""

    def __init__(self) -> None:
        self.stream = Stream()
        self.replicas = [Replica(Outbox()) for _ in range(2)]
        self.late: list[PublishOutput] = []
        self.epoch = 0

    def step(self, what: str, who: int) -> None:
        one = self.replicas[who]
        match what:
            case "say":
                for _ in range(SAID_AT_ONCE):
                    one.said += 1
                    one.do(one.box.emitted(output(one.said)))
            case "work":  # most of what it can, so that many are in flight
                for _ in range(SAID_AT_ONCE):
                    self.step("read" if one.reads or one.box.epoch is None else "answer", who)
            case "answer" if one.sent:
                sequence = self.stream.store(one.sent.popleft())
                one.do(one.box.refused() if sequence is None else one.box.stored(sequence))
            case "read" if one.reads or one.box.epoch is None:
                one.reads = False
                one.do(one.box.ended(self.stream.end))
            case "lead":  # the leader before goes on for as long as it does not hear of it
                self.epoch += 1
                one.do(one.box.led(self.epoch))
            case _:
                self._break(what, who)

    def _break(self, what: str, who: int) -> None:
        one = self.replicas[who]
        match what:
            case "lose" if one.sent:  # the answer does not come: it may be stored yet
                self.late.append(one.sent.popleft())
                one.do(one.box.refused())
            case "late" if self.late:
                self.stream.store(self.late.pop(0))
            case "die":
                self.late += one.sent
                self.replicas[who] = Replica(Outbox())

    def finish(self, goal: int) -> None:
        """Let one that has said all lead alone."""
        one = self.replicas[0] = Replica(Outbox())
        self.epoch += 1
        one.do(one.box.led(self.epoch))
        for number in range(1, goal + 1):
            one.do(one.box.emitted(output(number)))
        while one.reads or one.sent:
            self.step("read" if one.reads else "answer", 0)


@pytest.mark.slow
@settings(max_examples=300)
@given(steps=STEPS)
def test_each_output_is_stored_once_in_order_and_no_epoch_acts_after_a_later_one(
    steps: list[tuple[str, int]],
) -> None:
    world = World()
    for what, who in steps:
        world.step(what, who)
    event(f"leaders that stored: {min(3, len({one for one, _ in world.stream.held}))}")
    goal = max([1, *(one.said for one in world.replicas), len(world.stream.held)])
    world.finish(goal)

    assert [position for _, position in world.stream.held] == [at(n) for n in range(1, goal + 1)]
    epochs = [epoch for epoch, _ in world.stream.held]
    assert epochs == sorted(epochs)
