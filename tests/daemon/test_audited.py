"""What a node says of a command that it runs for somebody: a node may lie."""

import asyncio
from collections.abc import AsyncGenerator, Iterable

import pytest

from haptera.daemon.executing.audited import LATE_S, bounded
from haptera.daemon.executing.keeper import OUTPUT_BYTES_MAX
from haptera.runtime.network.peer_messages import ExecAnswer, ExecTold, Unable

SECOND = 1_000_000_000
CHUNK = bytes(1 << 20)


def passed_on(*said: ExecAnswer, then: ExecAnswer, step_ns: int = 0) -> list[ExecAnswer]:
    """What is passed on of these, and of another again and again; each takes so long."""
    now = [0]

    async def told() -> AsyncGenerator[ExecAnswer, None]:
        for one in said:
            yield one
        while True:
            now[0] += step_ns
            yield then

    async def heard() -> list[ExecAnswer]:
        return [one async for one in bounded(told(), 60, lambda: now[0])]

    return asyncio.run(heard())


@pytest.mark.parametrize("endless", [ExecTold(stdout=CHUNK), ExecTold(stderr=CHUNK)])
def test_output_without_an_end_is_given_up(endless: ExecTold) -> None:
    *some, last = passed_on(then=endless)

    assert sizes(some) == OUTPUT_BYTES_MAX
    assert last == Unable(f"the node sends more than {OUTPUT_BYTES_MAX} bytes: given up")


def test_an_end_that_does_not_come_is_waited_for_as_long_as_the_command_may_take() -> None:
    *some, last = passed_on(then=ExecTold(), step_ns=SECOND)

    assert len(some) == 60 + LATE_S
    assert last == Unable("the node sends for more than 60 s: given up")


@pytest.mark.parametrize("end", [ExecTold(status=0), Unable("it is gone")])
def test_nothing_is_passed_on_after_the_end(end: ExecAnswer) -> None:
    assert passed_on(ExecTold(b"some"), end, then=ExecTold(b"more")) == [ExecTold(b"some"), end]


def test_what_a_node_says_for_people_is_a_line() -> None:
    steering = "\x1b]0;x\a\u202egone\n"
    assert passed_on(then=Unable(steering)) == [Unable("?]0;x??gone")]
    assert passed_on(then=ExecTold(status=1, why="y" * 9_000)) == [
        ExecTold(status=1, why="y" * 512)
    ]


def sizes(said: Iterable[ExecAnswer]) -> int:
    return sum(len(one.stdout) + len(one.stderr) for one in said if isinstance(one, ExecTold))
