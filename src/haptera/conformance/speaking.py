"""Checks of how a module begins, and of the frames themselves."""

import asyncio
from typing import Final

import msgspec

from haptera.conformance.exam import QUIET_S, Exam
from haptera.conformance.report import CheckFailed
from haptera.core.modules.catalog import own_manifests
from haptera.kinds import KINDS
from haptera.lint.lint import lint_kinds
from haptera.model.answers.finding import Level
from haptera.wire.ipc import FRAME_BYTES_MAX, encode_frame

_PING: Final = {"op": "ping"}


async def begins(exam: Exam) -> str:
    """It answers `begin` with `ready`, which says what it declares; all else builds on that."""
    async with exam.started() as talk:
        ready = await talk.begin()
        if ready.manifest is None:
            raise CheckFailed("`ready` has no manifest", "put the module's manifest into it")
        exam.known = ready.manifest
        parts = len(ready.manifest.parts)
        told = f"{exam.name} {ready.version} declares {parts} part{'s'[: parts - 1]}"
        needs = [*ready.manifest.needs, *(f"to write {one}" for one in ready.manifest.writes)]
        return f"{told}, and needs {', '.join(needs)}" if needs else told


async def waits_for_begin(exam: Exam) -> str:
    async with exam.started() as talk:
        # What has read the first byte has started: until then, to say nothing says nothing.
        frame = talk.begin_frame()
        talk.send_bytes(frame[:1])
        await talk.read()
        await asyncio.sleep(QUIET_S)
        if talk.ready is not None:
            raise CheckFailed("it sent `ready` before `begin`", "read `begin` first")
        talk.send_bytes(frame[1:])
        await talk.begun()
        return "nothing was sent before `begin`"


async def can_be_planned_with(exam: Exam) -> str:
    found = lint_kinds(KINDS, [exam.manifest], own_manifests(KINDS))
    errors = [one for one in found if one.level is Level.ERROR]
    if errors:
        text = "; ".join(f"{one.place}: {one.text} [{one.rule}]" for one in errors)
        raise CheckFailed(text, errors[0].fix or "see docs/reference/lint.md")
    declared = exam.manifest
    if not declared.parts and not declared.samplers and not declared.gate:
        raise CheckFailed("it declares no part", "declare a look, a step, a gate or a sampler")
    return "the lint finds no error"


async def declares_again(exam: Exam) -> str:
    async with exam.talk() as talk:
        again = talk.ready.manifest if talk.ready is not None else None
    if again != exam.manifest:
        raise CheckFailed(
            "a second process declares something else", "declare the same manifest each time"
        )
    return "a second process declares the same"


async def two_at_once(exam: Exam) -> str:
    """While a module is replaced, the old process and the new one serve side by side."""
    async with exam.talk() as first, exam.talk() as second:
        for talk in (first, second):
            await talk.answer(exam.harmless(talk), exam.harmless_within_s)
        await first.ping()
        await second.ping()
        return "two processes serve at the same time"


async def answers_pings(exam: Exam) -> str:
    async with exam.talk() as talk:
        for _ in range(3):
            await talk.ping()
        return "each ping was answered"


async def takes_frames_cut_anywhere(exam: Exam) -> str:
    async with exam.talk() as talk:
        for byte in encode_frame(_PING):
            talk.send_bytes(bytes((byte,)))
            await talk.read()
        await talk.pong(1)
        talk.send_bytes(encode_frame(_PING) * 2 + encode_frame(_PING)[:5])
        await talk.pong(3)
        talk.send_bytes(encode_frame(_PING)[5:])
        await talk.pong(4)
        return "single bytes and several frames at once were read"


async def skips_unknown_keys(exam: Exam) -> str:
    strange = {"new": {"deep": [1, -1, 2.5, None, True, "é", {"a": [{}]}]}, "x" * 40: "y" * 300}
    async with exam.talk() as talk:
        talk.send({**_PING, **strange})
        await talk.pong(1)
        return "unknown keys, of any type, were skipped"


async def takes_a_full_frame(exam: Exam) -> str:
    async with exam.talk() as talk:
        room = FRAME_BYTES_MAX - len(msgspec.msgpack.encode({**_PING, "fill": "x" * 70_000}))
        frame = encode_frame({**_PING, "fill": "x" * (70_000 + room)})
        assert len(frame) == FRAME_BYTES_MAX + 4
        talk.send_bytes(frame)
        await talk.pong(1)
        return "a frame of 1 MiB was read"
