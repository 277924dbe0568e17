"""Whether a service answers: asked over HTTP or TCP, or by a command of its own."""

import asyncio
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from typing import Final

from haptera.kinds.host_port import HostPort
from haptera.kinds.service import ServiceReady, Way
from haptera.sdk.commands import NotStartedError, Program

# One question takes no longer; the looks that ask take 5 s.
ASK_WITHIN_S: Final = 3
HTTP_OK: Final = range(200, 400)
HTTP_LINE_BYTES_MAX: Final = 1_024
_STATUS: Final = re.compile(r"[0-9]{3}")


@dataclass(frozen=True, slots=True)
class ServicePlace:
    """Where a service is asked: its address and port, its folder and environment."""

    address: str
    port: int | None
    folder: Path
    environment: Mapping[str, str]


async def unanswered(ready: ServiceReady, place: ServicePlace) -> str | None:
    """Why the service does not answer as it is to; None: it does."""
    try:
        async with asyncio.timeout(ASK_WITHIN_S):
            match ready.way:
                case Way.HTTP:
                    return await _http(ready.what, place.address, _port(ready, place))
                case Way.TCP:
                    await _tcp(place.address, _port(ready, place))
                    return None
                case Way.COMMAND:
                    return await _command(ready.what, place)
    except TimeoutError:
        return f"{ready}: no answer within {ASK_WITHIN_S} s"
    except NotStartedError as error:
        return f"{ready}: {error.reason}"
    except OSError as error:
        # What asyncio makes of it names the address alone.
        return f"{ready}: {error if error.errno is None else os.strerror(error.errno)}"


def _port(ready: ServiceReady, place: ServicePlace) -> int:
    port = ready.port or place.port
    if port is None:
        raise OSError("it has no port to ask at: give the service one")
    return port


async def _tcp(address: str, port: int) -> None:
    _, writer = await asyncio.open_connection(address, port)
    writer.close()


async def _http(path: str, address: str, port: int) -> str | None:
    reader, writer = await asyncio.open_connection(address, port, limit=HTTP_LINE_BYTES_MAX)
    try:
        host = f"Host: {HostPort(address, port)}\r\nConnection: close"
        writer.write(f"GET {path} HTTP/1.1\r\n{host}\r\n\r\n".encode())
        words = (await reader.readline()).decode(errors="replace").split()
    except ValueError:
        words = []
    finally:
        writer.close()
    status = int(words[1]) if len(words) > 1 and _STATUS.fullmatch(words[1]) else 0
    return None if status in HTTP_OK else f"GET {path}: {' '.join(words[1:]) or 'no HTTP'}"


async def _command(command: str, place: ServicePlace) -> str | None:
    words = shlex.split(command)
    asked = Program(words, place.environment, place.folder, output=DEVNULL, errors=DEVNULL)
    status = (await asked.run(ASK_WITHIN_S)).status
    return None if status == 0 else f"{command}: status {status}"
