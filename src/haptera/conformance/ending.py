"""Checks of how a module ends: on a closed link, and on what is no frame, or means nothing."""

from typing import Any

from haptera.conformance.exam import Exam
from haptera.conformance.report import CheckFailed
from haptera.wire.ipc import FRAME_BYTES_MAX, encode_frame

_END = "close the link and end: the start of the next frame is unknown"
_END_CLOSED = "end when the link is closed: the daemon kills the process after 2 s"


async def ends_with_its_link(exam: Exam) -> str:
    async with exam.talk() as talk:
        talk.hang_up()
        await talk.ends("its link was closed", _END_CLOSED)
        return "it ended when its link was closed"


async def ends_with_its_link_at_work(exam: Exam) -> str:
    async with exam.talk() as talk:
        for _ in range(8):
            exam.harmless(talk)
        await talk.flush()
        talk.hang_up()
        await talk.ends("its link was closed during calls", _END_CLOSED)
        return "it ended while calls were open"


async def ends_before_it_began(exam: Exam) -> str:
    async with exam.started() as talk:
        talk.hang_up()
        await talk.ends("its link was closed before `begin`", _END_CLOSED)
        return "it ended before it began"


async def ends_on_rubbish(exam: Exam) -> str:
    return await _ends_on(exam, (4).to_bytes(4, "big") + b"\xc1\xff\xff\xff", "invalid MessagePack")


async def ends_on_what_is_no_map(exam: Exam) -> str:
    return await _ends_on(exam, (2).to_bytes(4, "big") + b"\x91\x01", "a list instead of a map")


async def ends_on_a_frame_too_large(exam: Exam) -> str:
    size = (FRAME_BYTES_MAX + 1).to_bytes(4, "big")
    return await _ends_on(exam, size, "a frame whose length is over 1 MiB")


async def ends_on_an_unknown_op(exam: Exam) -> str:
    return await _ends_on(exam, encode_frame({"op": "dance"}), "an unknown `op`")


async def ends_on_a_broken_call(exam: Exam) -> str:
    call: dict[str, Any] = {"op": "call", "id": "one", "work": "look"}
    return await _ends_on(exam, encode_frame(call), "a call with missing keys")


async def ends_on_another_beginning(exam: Exam) -> str:
    async with exam.started() as talk:
        talk.send({"op": "cancel", "id": 1})
        await talk.ends("a first frame that was not `begin`", _END)
        if talk.ready is not None:
            raise CheckFailed(
                "it answered another frame than `begin` with `ready`", "answer `begin` only"
            )
        return "it ended on a first frame that was not `begin`"


async def _ends_on(exam: Exam, data: bytes, what: str) -> str:
    async with exam.talk() as talk:
        talk.send_bytes(data)
        await talk.ends(what, _END)
        return f"it ended on {what}"
