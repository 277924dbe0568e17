"""One exchange with a QEMU's monitor: QMP, a JSON object a line, over a socket in a folder."""

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from haptera.modules.effects import DeviceError
from haptera.sdk import Refused

# A monitor that has not answered in this time is not going to.
ANSWER_S_MAX: Final = 5.0
LINE_BYTES_MAX: Final = 64 << 10


class MonitorError(DeviceError):
    """The monitor does not answer, or its answer cannot be understood."""


class HungUpError(MonitorError):
    """The monitor was there, and is not any more: its QEMU ends, or has just ended."""


class _Error(msgspec.Struct, frozen=True):
    desc: str


class _Said(msgspec.Struct, frozen=True):
    """One line: a greeting, an answer, or an event, which nobody asked for."""

    event: str | None = None
    error: _Error | None = None


async def command(socket: Path, name: str) -> None:
    """Have the machine whose monitor is there do one thing.

    Raises:
        Refused: it does not do that.
        HungUpError: it ended meanwhile.
        MonitorError: it does not answer, in time or in a way that can be understood.
    """
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            reader, writer = await asyncio.open_unix_connection(socket, limit=LINE_BYTES_MAX)
            try:
                await _next(reader)  # It greets.
                for one in ("qmp_capabilities", name):
                    writer.write(msgspec.json.encode({"execute": one}) + b"\n")
                    if (error := (await _next(reader)).error) is not None:
                        raise Refused(error.desc)
            finally:
                writer.close()
    except TimeoutError:
        raise MonitorError(f"monitor at {socket} does not answer") from None
    except (ConnectionError, EOFError) as error:
        raise HungUpError(f"monitor at {socket} hung up: {error}") from None
    except OSError as error:
        raise MonitorError(f"monitor at {socket} does not answer: {error}") from None
    except (ValueError, RecursionError) as error:
        raise MonitorError(f"monitor at {socket} is not QEMU's: {error}") from None


async def _next(reader: asyncio.StreamReader) -> _Said:
    while True:
        line = await reader.readline()
        if not line.endswith(b"\n"):
            raise EOFError("within a line")
        said = msgspec.json.decode(line, type=_Said)
        if said.event is None:
            return said
