"""What both sides ask and answer alike, so that each holds and reads what the other tells it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, assert_never

from haptera.core.engine import Engine
from haptera.model.declared.remote_schema import told_schema
from haptera.model.effects import Errand, FetchList, FetchSchema, Recall, RequestRetry
from haptera.model.events import Event, Learnt, Listed, Recalled
from haptera.runtime.network.peer_messages import (
    Answer,
    ListAsked,
    ListTold,
    Noted,
    RecallAsked,
    Request,
    RetryAsked,
    SchemaAsked,
    SchemaTold,
    Unable,
)
from haptera.sdk.boundary import Boundary
from haptera.wire.updates import Codec

# What the engine has asked for and is not asked yet; more is answered as if nobody were there.
QUEUE_MAX: Final = 10_000


class Exchange:
    """Carries out what the engine wants asked, and answers what the other side's engine does.

    `ask` asks a neighbour by its name; `codec` learns to read its words. Needs a running loop.
    """

    def __init__(
        self,
        engine: Engine,
        codec: Codec,
        ask: Callable[[str, Request], Awaitable[Answer]],
        deliver: Callable[[Iterable[Event]], None],
    ) -> None:
        self._engine = engine
        self._codec = codec
        self._ask = ask
        self._deliver = deliver
        self._boot = engine.side.instance
        # As whom neighbours know us to whom we are another than when we began.
        self.boots: dict[str, int] = {}
        self._errands: asyncio.Queue[Errand] = asyncio.Queue(QUEUE_MAX)

    def send(self, errand: Errand) -> None:
        """Ask this as soon as may be; what came of it is delivered."""
        if not self._errands.full():
            self._errands.put_nowait(errand)
        elif isinstance(errand, FetchList):
            self._deliver([Listed(errand.peer, None)])

    async def run(self) -> None:
        """Ask until cancelled, each neighbour in a task of its own."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(self._by_itself(await self._errands.get()))

    async def _by_itself(self, errand: Errand) -> None:
        with Boundary(f"{type(errand).__name__} of {errand.peer}") as one:
            await self.carry_out(errand)
        if one.error is not None and isinstance(errand, FetchList):
            self._deliver([Listed(errand.peer, None)])

    async def carry_out(self, errand: Errand) -> None:
        """Ask this now; what came of it is delivered."""
        match errand:
            case FetchList(peer):
                answer = await self._ask(peer, ListAsked())
                self._deliver([_listed(peer, answer)])
            case FetchSchema(peer):
                self._learn(peer, await self._ask(peer, SchemaAsked()))
            case RequestRetry(peer, entity):
                # So does this, in how the entity stands then.
                await self._ask(peer, RetryAsked(entity))
            case Recall(peer, entities):
                # Whether it was heard shows in what the neighbour then tells, or does not.
                await self._ask(peer, RecallAsked(entities))
            case _:
                assert_never(errand)

    def answer(self, peer: str, request: Request) -> Answer:
        """The messages to a neighbour."""
        match request:
            case ListAsked():
                boot = self.boots.get(peer, self._boot)
                return ListTold(boot, *self._engine.neighbours.listed(peer))
            case SchemaAsked():
                catalog = self._engine.catalog
                digest, kinds = self._engine.neighbours.schema, catalog.kinds.values()
                return SchemaTold(told_schema(digest, kinds, catalog.schema))
            case RecallAsked(entities):
                self._deliver([Recalled(peer, entities)])
                return Noted()
            case _:
                return Unable("this is not sent to a neighbour")

    def _learn(self, peer: str, answer: Answer) -> None:
        """Read its words before the neighbour hears that they are read."""
        told = answer.schema if isinstance(answer, SchemaTold) else None
        if told is not None and not self._codec.learn(peer, told):
            told = None
        self._deliver([Learnt(peer, told)])


def _listed(peer: str, answer: Answer) -> Listed:
    if isinstance(answer, ListTold):
        return Listed(peer, answer.boot, answer.mark, tuple(answer.versions))
    return Listed(peer, None)
