"""Frames between the daemon and a module's process: calls as frames, and what frames mean."""

from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.model.effects import Call, Start
from haptera.model.errors import HapteraError
from haptera.model.events import (
    Answered,
    Ended,
    Event,
    Failed,
    LoopBlocked,
    Progressed,
    Ready,
    WatchReported,
)
from haptera.model.parts import API, Manifest
from haptera.model.walltime import span
from haptera.runtime.processes.ipc import Frame
from haptera.sdk.failures import TEXT_BYTES_MAX
from haptera.sdk.host import NOTE_BYTES_MAX
from haptera.sdk.target import Boot

# For how long a gate may say that it has drained its node: a year.
DRAINED_MS_MAX: Final = 366 * 86_400_000


class Sampled(msgspec.Struct, frozen=True, gc=False):
    """The values of one round of a call, and the time it began; or the reason for its failure."""

    call: int
    at_ns: int = 0
    values: dict[str, float] = {}
    failure: str | None = None


def sampled_of(frame: Frame) -> Sampled | None:
    """The round that a frame reports for a sampling call; None for any other frame.

    Raises:
        ValueError: it measured what is no number.
    """
    match frame:
        case {"op": "sampled", "id": int(call), "at_ns": int(at_ns), "values": dict(values)}:
            try:
                return Sampled(call, at_ns, msgspec.convert(values, dict[str, float]))
            except msgspec.ValidationError as error:
                raise ValueError(f"it measured what is no number: {error}") from None
        case {"op": "failed", "id": int(call), "text": str(text)}:
            return Sampled(call, failure=text[:TEXT_BYTES_MAX])
        case _:
            return None


def begin_frame(start: Start, run_dir: Path) -> Frame:
    """The first message to a module, over its link: nobody else sees its settings."""
    settings = msgspec.json.decode(start.settings) if start.settings else {}
    return {
        "op": "begin",
        "module": start.module,
        "settings": settings,
        "run_dir": str(run_dir),
        "api": API,
    }


def call_frame(call: Call, boot: Boot | None) -> Frame:
    entity = {"kind": call.entity.kind, "name": call.entity.name, "node": call.entity.node}
    secret: dict[str, str | float] | None = None
    if boot is not None:
        secret = {
            "token": boot.token,
            "ca": boot.ca_pem,
            "parent": boot.parent,
            "good_for_s": boot.good_for_s,
        }
    return {
        "op": "call",
        "id": call.id,
        "work": call.work.value,
        "part": call.part,
        "entity": entity,
        "attributes": call.attributes,
        "values": call.values,
        "digest": call.digest,
        "deadline_ns": call.deadline_at,
        "intent": call.intent,
        "boot": secret,
    }


def event_of(start: Start, frame: Frame) -> Event:
    """What a module's frame means; the module is who it is by its link, not by what it says.

    Raises:
        ValueError: it means nothing.
    """
    match frame:
        case {"op": "answered", "id": int(call), "value": str(value), "at_ns": int(at)}:
            return Answered(call, value, at, _note(frame))
        case {"op": "ended", "id": int(call)}:
            return Ended(call)
        case {"op": "failed", "id": int(call), "text": str(text), "refused": bool(refused)}:
            return Failed(call, text[:TEXT_BYTES_MAX], refused, _drained_ms(frame))
        case {"op": "sighted", "id": int(call), "value": str(value), "at_ns": int(at)}:
            return WatchReported(call, value, at, _note(frame))
        case {"op": "sampled", "id": int(call)}:
            return Progressed(call, "", None)  # of a call that was cancelled: nobody waits for it
        case {"op": "progress", "id": int(call), "text": str(text)}:
            return Progressed(call, text[:NOTE_BYTES_MAX], _share(frame.get("done")))
        case {"op": "blocked", "text": str(text), "ms": int(blocked_ms)} if blocked_ms >= 0:
            told = f"{text[:TEXT_BYTES_MAX]}, for {span(blocked_ms)}"
            return LoopBlocked(start.module, told, start.process)
        case {"op": "ready", "version": str(version)}:
            manifest = _manifest(start.module, frame.get("manifest"))
            return Ready(start.module, start.process, version, manifest)
        case _:
            raise ValueError(f"it sent a frame {frame.get('op')!r} that is not known")


def _drained_ms(frame: Frame) -> int | None:
    match frame.get("drains"), frame.get("drained_ms", 0):
        case True, int(drained_ms) if 0 <= drained_ms <= DRAINED_MS_MAX:
            return drained_ms
        case True, _:
            raise ValueError("it sent a drain that lasts no time")
        case _:
            return None


def _share(done: Any) -> float | None:
    if done is None or (isinstance(done, int | float) and 0 <= done <= 1):
        return done
    raise ValueError("it sent a progress outside 0 to 1")


def _note(frame: Frame) -> str | None:
    note = frame.get("note")
    if note is None or (isinstance(note, str) and len(note.encode()) <= NOTE_BYTES_MAX):
        return note
    raise ValueError("it sent a note that is not text, or too long")


def _manifest(module: str, content: Any) -> Manifest | None:
    """What it declares, of its own name only; the core checks whether it can be planned with."""
    if content is None:
        return None
    try:
        manifest = msgspec.convert(content, Manifest)
    except (msgspec.ValidationError, HapteraError) as error:
        raise ValueError(f"it declares an invalid manifest: {error}") from None
    if manifest.api > API:
        what = f"it is written for version {manifest.api} of the frames, and this haptera has {API}"
        raise ValueError(f"{what}: install a newer haptera")
    declared = (*manifest.parts, *manifest.samplers)
    if {manifest.name, *(one.module for one in declared)} != {module}:
        raise ValueError("it declares the name of another module")
    return manifest
