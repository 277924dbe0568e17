"""A worker that reads a site which came over the API: what that takes is not known beforehand."""

import asyncio
from pathlib import Path
from typing import Any, Final

from haptera.runtime.processes.forking import LoopZygote
from haptera.runtime.processes.worker import Bounds, Workers, work
from haptera.site.apply.proposal import answer

TARGET: Final = "haptera.site.apply.site_process:site_process"
# The largest site that may be sent, of 100,000 nodes, takes 350 MB and some 20 s of a free core.
BOUNDS: Final = Bounds(memory_bytes_max=1 << 30, answer_bytes_max=64 << 20, within_s=120.0)
# How many are read at the same time.
AT_ONCE: Final = 2


def readers(zygote: LoopZygote, log_dir: Path, bounds: Bounds = BOUNDS) -> Workers:
    """Who reads sites. Needs a running loop."""
    return Workers("reader", TARGET, zygote, log_dir, bounds, asyncio.Semaphore(AT_ONCE))


def site_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Be such a worker: a fork target."""
    work(arguments, descriptors, answer)
