"""A parent's side: a command is in the audit, durably, before its node hears of it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from haptera.api.backend import Execute
from haptera.runtime.network.peer_messages import ExecAnswer, ExecAsked
from haptera.runtime.store.store import Store, kept


def audited(
    store: Store, run: Callable[[str, ExecAsked], AsyncGenerator[ExecAnswer, None]]
) -> Execute:
    """What has a node `run` a command, once that is in the audit."""

    async def execute(asked: ExecAsked, who: str, what: str) -> AsyncGenerator[ExecAnswer, None]:
        assert asked.entity.node is not None, "the API checks it"
        kept(await asyncio.wrap_future(store.note(who, what, asked.entity)))
        async with aclosing(run(asked.entity.node, asked)) as answers:
            async for told in answers:
                yield told

    return execute
