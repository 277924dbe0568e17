"""A worker: a process that is asked one question of the planner, answers, and ends."""

import os
import socket
from typing import Any, Final

from haptera.model.chain import NoChain, Reason, ReasonKind
from haptera.model.effects import SearchPlan
from haptera.model.errors import HapteraError
from haptera.model.events import PlanFound
from haptera.planner.plan_query import answer
from haptera.runtime.processes.confinement.confine import confine
from haptera.runtime.search.search_frames import Frame, search_of, searched_frame
from haptera.wire.frame import Reject
from haptera.wire.ipc import Frames, encode_frame

# Behind all that somebody waits for, the daemon and its modules above all.
NICENESS: Final = 10
READ_BYTES: Final = 65_536


def search_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Be a worker: a fork target."""
    memory_bytes_max: int = arguments["memory_bytes_max"]
    confine("planner", memory_bytes_max)
    os.nice(NICENESS)
    with socket.socket(fileno=descriptors[0]) as link:
        question = _question(link)
        if question is not None:
            answered = _answer(search_of(question), memory_bytes_max)
            link.sendall(encode_frame(searched_frame(answered)))


def _question(link: socket.socket) -> Frame | None:
    """What is asked; None where nobody asks any more."""
    frames = Frames()
    while data := link.recv(READ_BYTES):
        fed = frames.feed(data)
        if isinstance(fed, Reject):
            raise HapteraError("malformed frame from the daemon")
        if fed:
            return fed[0]
    return None


def _answer(asked: SearchPlan, memory_bytes_max: int) -> PlanFound:
    try:
        return answer(asked)
    except MemoryError:
        pass  # Answered below, where nothing holds on any more to what was found out.
    text = f"gave up: it takes more than {memory_bytes_max >> 20} MiB of memory"
    return PlanFound(asked.id, NoChain(Reason(ReasonKind.BUDGET, None, text), 0))
