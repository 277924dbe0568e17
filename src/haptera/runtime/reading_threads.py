"""Threads for what requests have read, apart from those that keep this parent the parent."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

# Reads that are under way at once; others wait for these, and nothing else does.
READERS_MAX: Final = 4

Arguments = ParamSpec("Arguments")
Read = TypeVar("Read")

_readers: Final = ThreadPoolExecutor(READERS_MAX, "reader")


async def in_reading_thread(
    read: Callable[Arguments, Read], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Read:
    """What this reads, which may take long, as often as anybody asks.

    The loop's own threads renew a lease and follow a parent above: in these, requests for the past
    could hold that up until the lease has ended.
    """
    return await asyncio.get_running_loop().run_in_executor(
        _readers, partial(read, *args, **kwargs)
    )
