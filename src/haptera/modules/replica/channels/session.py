"""One program's connection to its channels: what it hears, what it says, and where it begins.

Whatever breaks, the program or the carrier, ends the session; the program then connects again,
says how far it is, and says again what is not stored. So nothing has to be kept here.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, assert_never

from haptera.app.channel_events import Hole
from haptera.app.channel_talk import Header, frame, parse_header
from haptera.kinds.group import Recover
from haptera.modules.replica.channels.carrier import (
    Carrier,
    ChangedEndError,
    Voice,
)
from haptera.modules.replica.channels.comparison import TrialComparison
from haptera.modules.replica.channels.inbox import Inbox
from haptera.modules.replica.channels.outbox import (
    Confirm,
    Effect,
    NumberedOutput,
    Outbox,
    OutputPosition,
    PublishOutput,
    ReadEnd,
    StreamEnd,
)
from haptera.modules.replica.channels.program_frames import (
    EmitFrame,
    HelloFrame,
    OfferFrame,
    PieceFrame,
    ProgramFrame,
    SuppliedFrame,
    program_frame,
)
from haptera.modules.replica.channels.recovery import (
    NoStateError,
    StateInPieces,
    recovered,
)

# How often it is looked whether this replica leads, and, where it does not, what was published.
LOOK_EVERY_S: Final = 0.02
FOLLOW_EVERY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class ChannelPlan:
    """The owner of channels: one incarnation of a replica.

    Where it `speaks_alone`, it says its outputs as itself, and needs no lead for that.
    """

    group: str
    rank: int
    placement: int
    starts: int
    hears: tuple[str, ...] = ()
    speaks_alone: bool = False
    recover: Recover = Recover.EMPTY

    @property
    def voice(self) -> Voice:
        return Voice(self.group, self.rank if self.speaks_alone else None)

    def position(self, number: int, nth: int) -> OutputPosition:
        of = (self.placement, self.starts) if self.speaks_alone else (0, 0)
        return OutputPosition(*of, number, nth)


@dataclass(slots=True)
class ChannelSession:
    """The talk with one program; `epoch` says under which one this replica leads now.

    What it says while it does not lead is held against what the leader says, where that is wanted.
    """

    plan: ChannelPlan
    carrier: Carrier
    epoch: Callable[[], int | None]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    started: Callable[[], None]
    comparison: TrialComparison | None = None
    _outbox: Outbox = field(default_factory=Outbox)
    _inbox: Inbox = field(default_factory=Inbox)
    # What the carrier is asked, in order: the end of the stream, or to store one (None: refused).
    _asked: asyncio.Queue[asyncio.Task[StreamEnd | int | None]] = field(
        default_factory=asyncio.Queue
    )
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    # What the program was not told yet, as it reads slowly: the last of each counts for all before.
    _confirmed: OutputPosition | None = None
    _is_wanted: bool = False
    _untold: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self) -> None:
        """Talk, until either side breaks.

        Raises:
            ConnectionError: the program hung up, or says what is no frame.
            CarrierError: the carrier does not answer.
            ExceptionGroup: of these.
        """
        await self.carrier.prepare(self.plan.group, self.plan.hears)
        hello, _ = await self._frame()
        if not isinstance(hello, HelloFrame):
            raise ConnectionError("a program says hello first")
        try:
            if hello.number is None:
                await self._begin(hello)
            else:
                self._inbox = Inbox.after(hello.number, hello.heard)
            await self._check_kept()
        except NoStateError as error:
            self._say({"op": "failed", "why": str(error)})
            return
        self.started()
        async with asyncio.TaskGroup() as tasks:
            for one in (self._read(tasks), self._hear(), self._lead(tasks), self._settle(tasks)):
                tasks.create_task(one)
            tasks.create_task(self._tell())
            if self.comparison is not None:
                tasks.create_task(self._compare(self.comparison, self._inbox.number))

    async def _begin(self, hello: HelloFrame) -> None:
        """Hand over where the program begins, with the state of a sibling."""
        state = await recovered(self.carrier, self.plan.group, self.plan.rank, self.plan.recover)
        if state is None:
            self._say({"op": "start", "number": 0, "heard": {}, "digest": ""})
            return
        have = hello.have if hello.blob == state.blob else 0
        at, numbers = 0, iter(state.outputs)
        async for piece in self.carrier.pieces(self.plan.group, state):
            if at < state.size:
                if new := piece[max(0, have - at) :]:
                    self._say({"op": "piece", "blob": state.blob}, new)
                at += len(piece)
            else:
                self._take_over(*next(numbers), piece)
            await self.writer.drain()
        self._inbox = Inbox.after(state.number, state.heard)
        said = {"number": state.number, "heard": dict(state.heard), "digest": state.digest}
        self._say({"op": "start", **said})

    def _take_over(self, number: int, nth: int, data: bytes) -> None:
        """Have what the supplier has said kept here, too, until it is stored."""
        self._say({"op": "output", "number": number, "nth": nth}, data)
        self._outbox.emitted(NumberedOutput(self.plan.position(number, nth), data))

    async def _check_kept(self) -> None:
        """See that what the program was given is there.

        Raises:
            NoStateError: it is not.
        """
        bounds = await self.carrier.bounds(self.plan.group)
        if bounds.last < self._inbox.number:
            why = f"the carrier has lost messages: it ends at {bounds.last}"
            raise NoStateError(f"{why}, and {self._inbox.number} were heard")

    async def _hear(self) -> None:
        """Give the program its input; it is given no more than it reads."""
        async for stored in self.carrier.heard(self.plan.group, self._inbox.number):
            for event in self._inbox.stored(stored):
                if isinstance(event, Hole):
                    hole = {"source": event.source, "first": event.first, "last": event.last}
                    self._say({"op": "hole", **hole})
                    continue
                said = {"number": event.number, "group": stored.group, "rank": stored.rank}
                said |= {"incarnation": event.incarnation, "epoch": event.epoch}
                self._say({"op": "message", **said, "source_number": stored.at}, event.data)
            await self.writer.drain()

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        """Hear what the program says; it waits where too much is not stored."""
        pieces = StateInPieces(self.carrier, self.plan.group)
        while True:
            said, data = await self._frame()
            match said:
                case EmitFrame(number, nth):
                    self._check_given(number)
                    await self._until(lambda: not self._outbox.is_full)
                    output = NumberedOutput(self.plan.position(number, nth), data)
                    if self.comparison is not None:
                        self.comparison.said(output)
                        self._changed.set()
                    self._do(self._outbox.emitted(output), tasks)
                case OfferFrame():
                    await self.carrier.offer(
                        self.plan.group, self.plan.rank, self._leads, self._want
                    )
                case PieceFrame():
                    await pieces.add(data)
                case SuppliedFrame(number):
                    self._check_given(number)
                    alone = self.plan.speaks_alone
                    await pieces.end(said, [] if alone else [*self._outbox.ring])
                    pieces = StateInPieces(self.carrier, self.plan.group)
                case HelloFrame():
                    raise ConnectionError("a program says hello once")
                case None:
                    pass  # of a later haptera
                case other:
                    assert_never(other)

    def _check_given(self, number: int) -> None:
        """See that a frame names a message that the program was given.

        An output after a later one would count as stored for all of its siblings, with all before.

        Raises:
            ConnectionError: it was not.
        """
        if number > self._inbox.number:
            raise ConnectionError(f"the program was not given message {number}")

    async def _tell(self) -> None:
        """Tell the program what it asks for by its frames; no more than it reads."""
        while True:
            await self._untold.wait()
            self._untold.clear()
            if self._is_wanted:
                self._is_wanted = False
                self._say({"op": "wanted"})
            if (stored := self._confirmed) is not None:
                self._confirmed = None
                self._say({"op": "confirmed", "number": stored.number, "nth": stored.nth})
            await self.writer.drain()

    async def _lead(self, tasks: asyncio.TaskGroup) -> None:
        """See whether this replica leads; where it does not, what the leader published."""
        followed = 0
        while True:
            epoch = 0 if self.plan.speaks_alone else self.epoch()
            self._do(self._outbox.led(epoch), tasks)
            followed += 1
            if epoch is None and followed * LOOK_EVERY_S >= FOLLOW_EVERY_S:
                followed = 0
                self._do([ReadEnd()] if self._outbox.ring else [], tasks)
            await asyncio.sleep(LOOK_EVERY_S)

    async def _compare(self, comparison: TrialComparison, number: int) -> None:
        """Hold what comes after this message against the leader's outputs."""
        end = await self.carrier.end(self.plan.voice)
        before = self.plan.position(number + 1, 0)
        comparison.begin(max(end.position, before))
        async for one in self.carrier.said(self.plan.group, end.sequence):
            if self._leads():
                comparison.begin(one.position)  # these are its own
            else:
                await self._until(lambda: comparison.has_room)
                comparison.published(one)

    async def _settle(self, tasks: asyncio.TaskGroup) -> None:
        """See in order what came of what the carrier was asked."""
        while True:
            match await (await self._asked.get()):
                case StreamEnd() as end:
                    effects = self._outbox.ended(end)
                case None:
                    effects = self._outbox.refused()
                case int(sequence):
                    effects = self._outbox.stored(sequence)
                case other:
                    assert_never(other)
            self._changed.set()
            self._do(effects, tasks)

    def _do(self, effects: list[Effect], tasks: asyncio.TaskGroup) -> None:
        for one in effects:
            match one:
                case ReadEnd():
                    self._asked.put_nowait(tasks.create_task(self._end()))
                case PublishOutput():
                    self._asked.put_nowait(tasks.create_task(self._publish(one)))
                case Confirm(position):
                    if position[:2] == self.plan.position(0, 0)[:2]:
                        self._confirmed = position
                        self._untold.set()
                case _:
                    assert_never(one)

    async def _end(self) -> StreamEnd | int | None:
        return await self.carrier.end(self.plan.voice)

    async def _publish(self, one: PublishOutput) -> StreamEnd | int | None:
        try:
            return await self.carrier.publish(self.plan.voice, one)
        except ChangedEndError:
            return None

    async def _until(self, so: Callable[[], bool]) -> None:
        while not so():
            self._changed.clear()
            await self._changed.wait()

    def _leads(self) -> bool:
        return self._outbox.epoch is not None

    def _want(self) -> None:
        self._is_wanted = True
        self._untold.set()

    def _say(self, header: Header, data: bytes | None = None) -> None:
        self.writer.write(frame(header, data))

    async def _frame(self) -> tuple[ProgramFrame | None, bytes]:
        try:
            header = parse_header(await self.reader.readuntil(b"\n"))
            return program_frame(header), await self.reader.readexactly(header["size"])
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise ConnectionError("the program hung up") from error
