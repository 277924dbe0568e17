"""Channels for programs under test, in one process: no cluster, and no server.

A `ChannelBench` gives each replica the socket that it has on a node, and the same talk over it. The
carrier is in memory; who leads is said by the test.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from haptera.app.channel_events import ChannelMessage
from haptera.kinds.group import Recover
from haptera.modules.replica.channels.carrier import (
    ChangedEndError,
    StreamBounds,
    SuppliedState,
    Voice,
)
from haptera.modules.replica.channels.comparison import TrialComparison
from haptera.modules.replica.channels.door import Serving, channels_door
from haptera.modules.replica.channels.inbox import StoredMessage
from haptera.modules.replica.channels.outbox import (
    EMPTY,
    NumberedOutput,
    OutputPosition,
    PublishOutput,
    StreamEnd,
)
from haptera.modules.replica.channels.session import ChannelPlan, ChannelSession

Offer = tuple[Callable[[], bool], Callable[[], None]]


@dataclass(slots=True)
class MemoryGroup:
    """The streams of a group; `forgotten` counts the first messages of its input."""

    hears: tuple[str, ...] = ()
    said: list[tuple[Voice, int, OutputPosition, bytes]] = field(default_factory=list)
    input: list[StoredMessage] = field(default_factory=list)
    forgotten: int = 0
    pieces: list[bytes] = field(default_factory=list)
    state: SuppliedState | None = None
    offers: dict[int, Offer] = field(default_factory=dict)


class MemoryCarrier:
    """A carrier for one process, which holds all that was ever said."""

    def __init__(self) -> None:
        self.groups: dict[str, MemoryGroup] = {}
        self._grown = asyncio.Event()

    def of(self, group: str) -> MemoryGroup:
        return self.groups.setdefault(group, MemoryGroup())

    async def prepare(self, group: str, hears: tuple[str, ...]) -> None:
        self.of(group).hears = hears

    async def end(self, voice: Voice) -> StreamEnd:
        held = self.of(voice.group).said
        for at in range(len(held) - 1, -1, -1):
            who, epoch, position, _ = held[at]
            if who == voice:
                return StreamEnd(at + 1, epoch, position)
        return EMPTY

    async def publish(self, voice: Voice, one: PublishOutput) -> int:
        held = self.of(voice.group).said
        end = await self.end(voice)
        match one.after:
            case int(sequence):
                fits = end.sequence == sequence
            case position:
                fits = bool(held) and held[-1][:3] == (voice, one.epoch, position)
        if not fits:
            raise ChangedEndError(f"{voice.subject} ends at {end}")
        held.append((voice, one.epoch, one.output.position, one.output.data))
        self._grow()
        for group in self.groups.values():
            if voice.group in group.hears:
                self._hand(group, voice, one, len(held))
        return len(held)

    def _hand(self, group: MemoryGroup, voice: Voice, one: PublishOutput, at: int) -> None:
        number = len(group.input) + 1
        told = (voice.group, at, voice.rank, one.epoch, one.output.position)
        group.input.append(StoredMessage(number, one.output.data, *told))
        self._grow()

    def put(self, group: str, data: bytes) -> int:
        """Store a message from outside in a group's input."""
        held = self.of(group).input
        held.append(StoredMessage(len(held) + 1, data))
        self._grow()
        return len(held)

    def forget(self, group: str, before: int) -> None:
        """Have the limits of a stream pass its messages before this number."""
        self.of(group).forgotten = before - 1

    async def bounds(self, group: str) -> StreamBounds:
        return StreamBounds(self.of(group).forgotten + 1, len(self.of(group).input))

    async def heard(self, group: str, after: int) -> AsyncIterator[StoredMessage]:
        held = self.of(group)
        at = max(after, held.forgotten)
        while True:
            while at < len(held.input):
                yield held.input[at]
                at += 1
            await self._grown.wait()

    async def said(self, group: str, after: int) -> AsyncIterator[NumberedOutput]:
        held, at = self.of(group).said, after
        while True:
            for _, _, position, data in held[at:]:
                at += 1
                yield NumberedOutput(position, data)
            await self._grown.wait()

    async def supply(self, group: str, blob: str, piece: bytes) -> int:
        self.of(group).pieces.append(piece)
        return len(self.of(group).pieces)

    async def supplied(self, group: str, state: SuppliedState) -> None:
        self.of(group).state = state

    async def state(self, group: str) -> SuppliedState | None:
        return self.of(group).state

    async def pieces(self, group: str, state: SuppliedState) -> AsyncIterator[bytes]:
        for at in range(state.first, state.last + 1):
            yield self.of(group).pieces[at - 1]

    async def suppliers(self, group: str) -> dict[int, bool]:
        return {rank: leads() for rank, (leads, _) in self.of(group).offers.items()}

    async def ask(self, group: str, rank: int) -> None:
        self.of(group).offers[rank][1]()

    async def offer(
        self, group: str, rank: int, leads: Callable[[], bool], asked: Callable[[], None]
    ) -> None:
        self.of(group).offers[rank] = leads, asked

    def ended(self, group: str, rank: int) -> None:
        """A session is over: it can supply nothing any more."""
        self.of(group).offers.pop(rank, None)

    def _grow(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()


class ChannelBench:
    """Groups, and a socket for each of their replicas, as long as it is entered."""

    def __init__(self, directory: Path) -> None:
        self.carrier = MemoryCarrier()
        self._directory = directory
        self._leads: dict[str, tuple[int, int]] = {}
        self._groups: dict[str, tuple[tuple[str, ...], bool, Recover]] = {}
        self._starts: dict[tuple[str, int], int] = {}
        self._doors: dict[tuple[str, int], AsyncExitStack] = {}
        self.compared: dict[tuple[str, int], TrialComparison] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for door in self._doors.values():
            await door.aclose()

    def group(
        self,
        name: str,
        *,
        hears: tuple[str, ...] = (),
        leader: bool = True,
        recover: Recover = Recover.EMPTY,
    ) -> None:
        """Declare a group; without a leader each of its replicas speaks for itself."""
        self._groups[name] = hears, not leader, recover
        self.carrier.of(name).hears = hears

    async def replica(self, group: str, rank: int) -> dict[str, str]:
        """Start a new incarnation of a replica; its program's environment."""
        starts = self._starts[group, rank] = self._starts.get((group, rank), 0) + 1
        path = await self._open(group, rank)
        return {
            "HAPTERA_CHANNELS": str(path),
            "HAPTERA_GROUP": group,
            "HAPTERA_RANK": str(rank),
            "HAPTERA_NODE": "bench",
            "HAPTERA_PLACEMENT": "1",
            "HAPTERA_STARTS": str(starts),
        }

    async def restart(self, group: str, rank: int) -> dict[str, str]:
        """Cut the connection and begin a new incarnation."""
        return await self.replica(group, rank)

    async def cut(self, group: str, rank: int) -> None:
        """Cut the connection; the program goes on, and connects again."""
        await self._open(group, rank)

    async def _open(self, group: str, rank: int) -> Path:
        if (before := self._doors.pop((group, rank), None)) is not None:
            await before.aclose()
        hears, alone, recover = self._groups[group]
        starts = self._starts[group, rank]
        plan = ChannelPlan(group, rank, 1, starts, hears, alone, recover)
        folder = self._directory / f"{group}.{rank}"
        folder.mkdir(parents=True, exist_ok=True)
        stack = self._doors[group, rank] = AsyncExitStack()
        return await stack.enter_async_context(channels_door(folder, self._serving(plan)))

    def lead(self, group: str, rank: int) -> None:
        """Have this rank lead from now on, under the next epoch."""
        epoch = self._leads.get(group, (0, 0))[1] + 1
        self._leads[group] = rank, epoch

    def trial(self, group: str, rank: int) -> TrialComparison:
        """Have what this rank says compared with the leader's outputs, from its next start on."""
        return self.compared.setdefault((group, rank), TrialComparison())

    async def put(self, group: str, data: bytes) -> int:
        """Say something from outside; its number in the group's input."""
        return self.carrier.put(group, data)

    async def outputs(self, group: str, count: int, within_s: float = 10.0) -> list[ChannelMessage]:
        """The first so many outputs of a group.

        Raises:
            TimeoutError: there are fewer within the time.
        """
        held = self.carrier.of(group).said
        async with asyncio.timeout(within_s):
            while len(held) < count:  # noqa: ASYNC110  what programs do is waited for
                await asyncio.sleep(0.01)
        return [
            ChannelMessage(
                at + 1,
                group if voice.rank is None else f"{group}.{voice.rank}",
                position.incarnation,
                at + 1,
                epoch,
                data,
            )
            for at, (voice, epoch, position, data) in enumerate(held[:count])
        ]

    def _serving(self, plan: ChannelPlan) -> Serving:
        def epoch() -> int | None:
            rank, epoch = self._leads.get(plan.group, (-1, 0))
            return epoch if rank == plan.rank else None

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                compared = self.compared.get((plan.group, plan.rank))
                await ChannelSession(
                    plan, self.carrier, epoch, reader, writer, _nothing, compared
                ).serve()
            finally:
                self.carrier.ended(plan.group, plan.rank)

        return serve


def _nothing() -> None:
    """Nobody waits for a replica under test to be ready."""
