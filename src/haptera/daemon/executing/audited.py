"""A parent's side: a command is in the audit before its node hears of it, and its answers end."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from haptera.api.backend import Execute
from haptera.core.state.limits import S
from haptera.daemon.executing.keeper import GRACE_S, OUTPUT_BYTES_MAX, TOLD_WITHIN_S
from haptera.model.text import showable
from haptera.runtime.clock import now_ns
from haptera.runtime.network.peer_messages import ExecAnswer, ExecAsked, ExecTold, Unable
from haptera.runtime.store.store import Store, kept

# Beyond the command's own limit: to end it, to hear of it, and that machines are slow.
LATE_S: Final = GRACE_S + TOLD_WITHIN_S + 20.0


def audited(
    store: Store, run: Callable[[str, ExecAsked], AsyncGenerator[ExecAnswer, None]]
) -> Execute:
    """What has a node `run` a command, once that is in the audit."""

    async def execute(asked: ExecAsked, who: str, what: str) -> AsyncGenerator[ExecAnswer, None]:
        assert asked.entity.node is not None, "the API checks it"
        kept(await asyncio.wrap_future(store.note(who, what, asked.entity)))
        async with aclosing(run(asked.entity.node, asked)) as answers:
            async for told in bounded(answers, asked.within_s, now_ns):
                yield told

    return execute


async def bounded(
    answers: AsyncGenerator[ExecAnswer, None], within_s: float, clock: Callable[[], int]
) -> AsyncGenerator[ExecAnswer, None]:
    """What a node says of a command, up to its end: no more, and no longer, than a command may.

    The node keeps to these limits itself, unless it lies.
    """
    left_bytes, until_ns = OUTPUT_BYTES_MAX, clock() + int((within_s + LATE_S) * S)
    async for told in answers:
        match told:
            case Unable(text):
                yield Unable(showable(text))
                return
            case ExecTold(stdout, stderr, status, why):
                left_bytes -= len(stdout) + len(stderr)
                if left_bytes < 0:
                    yield Unable(f"the node sends more than {OUTPUT_BYTES_MAX} bytes: given up")
                    return
                if clock() > until_ns:
                    yield Unable(f"the node sends for more than {within_s:.0f} s: given up")
                    return
                yield ExecTold(stdout, stderr, status, None if why is None else showable(why))
                if status is not None:
                    return
