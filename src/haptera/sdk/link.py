"""A module's end of its link: frames as they come, until the daemon closes it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from haptera.model.entity import EntityId
from haptera.model.errors import Code, HapteraError
from haptera.wire.frame import Reject
from haptera.wire.ipc import Frames

READ_BYTES = 65_536

Frame = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BeginFrame:
    """The folder for files, the settings, and the flag that asks for `ready` alone."""

    run_dir: Path
    settings: Mapping[str, Any]
    describe: bool = False


class _Boot(msgspec.Struct, frozen=True, gc=False):
    token: str
    ca: str
    parent: str
    good_for_s: float = 600.0


class CallFrame(msgspec.Struct, frozen=True, gc=False):
    """A `call` frame; which keys it has, and of what types."""

    id: int
    work: Literal["look", "step", "watch", "hold", "release", "sample"]
    part: str
    entity: EntityId
    attributes: dict[str, str]
    values: dict[str, str | int]
    digest: str
    deadline_ns: int | None
    intent: str | None
    boot: _Boot | None
    settings: dict[str, Any] | None = None


async def frames_of(reader: asyncio.StreamReader) -> AsyncIterator[Frame]:
    """Each frame as it comes.

    Raises:
        HapteraError: what came is no frame.
    """
    frames = Frames()
    while data := await _read(reader):
        fed = frames.feed(data)
        if isinstance(fed, Reject):
            raise HapteraError("malformed frame from the daemon", code=Code.VERSION_MISMATCH)
        for frame in fed:
            yield frame


def parse_begin(frame: Frame) -> BeginFrame:
    """The content of the frame with which a process begins.

    Raises:
        HapteraError: this is no such frame.
    """
    match frame:
        case {"op": "begin", "run_dir": str(run_dir), "settings": dict(settings)}:
            return BeginFrame(Path(run_dir), settings, frame.get("describe") is True)
        case _:
            raise HapteraError(
                f"the daemon begins with {frame.get('op')!r}", code=Code.VERSION_MISMATCH
            )


def parse_call(frame: Frame) -> CallFrame:
    """The call in a frame.

    Raises:
        HapteraError: this is no such frame.
    """
    try:
        return msgspec.convert(frame, CallFrame)
    except msgspec.ValidationError as error:
        raise HapteraError(
            f"malformed call from the daemon: {error}", code=Code.VERSION_MISMATCH
        ) from error


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(READ_BYTES)
    except ConnectionError:
        # A daemon that was killed before it had read all that we said.
        return b""
