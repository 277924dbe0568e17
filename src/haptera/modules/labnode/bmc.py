"""What a virtual node's BMC is asked, and as much of an HTTP client as that takes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from haptera.kinds.host_port import HostPort
from haptera.sdk import HapteraError, Refused, Target

# A BMC answers in milliseconds; one that has not by then is not going to.
ANSWER_S_MAX: Final = 1.5
HEAD_BYTES_MAX: Final = 8 << 10
BODY_BYTES_MAX: Final = 64 << 10
# The stream has a heartbeat each 5 s: without three of them it is dead.
SILENCE_S_MAX: Final = 15.0
RECONNECT_S: Final = 1.0

PowerName = Literal["on", "off"]


class BmcError(Exception):
    """The BMC cannot be asked, or answers what is no answer."""


class PowerState(msgspec.Struct, frozen=True):
    power: PowerName


class BmcProblem(msgspec.Struct, frozen=True):
    error: str


@dataclass(frozen=True, slots=True)
class Bmc:
    """The BMC of one node."""

    target: Target

    async def power(self) -> PowerName:
        """Whether the node has power now."""
        status, body = await self._ask("GET", "/power", b"")
        if status != 200:
            raise BmcError(f"BMC answers {status}: {_problem(body)}")
        return _decode_power(body)

    async def command(self, power: PowerName) -> None:
        """Command this; it takes effect later.

        Raises:
            Refused: the BMC says that it will not.
        """
        order: dict[str, Any] = {"power": power, "command": self.target.intent}
        if self.target.boot is not None:
            boot = self.target.boot
            order["boot"] = {"token": boot.token, "ca": boot.ca_pem, "parent": boot.parent}
        status, body = await self._ask("POST", "/power", msgspec.json.encode(order))
        if status == 409:
            raise Refused(_problem(body))
        if status != 202:
            raise BmcError(f"BMC answers {status}: {_problem(body)}")

    async def events(self) -> AsyncIterator[PowerName]:
        """The power now and at each change, for as long as somebody listens."""
        while True:
            try:
                async with self._connected() as (reader, writer):
                    writer.write(b"GET /events HTTP/1.1\r\nHost: bmc\r\n\r\n")
                    async with asyncio.timeout(ANSWER_S_MAX):
                        await _read_head(reader)
                    async for power in _read_events(reader):
                        yield power
            except BmcError:
                pass  # A look tells what is wrong with this BMC; here it is tried again.
            await asyncio.sleep(RECONNECT_S)

    async def _ask(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        head = f"{method} {path} HTTP/1.1\r\nHost: bmc\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            async with asyncio.timeout(ANSWER_S_MAX), self._connected() as (reader, writer):
                if method == "POST":
                    self.target.refuse_late()
                writer.write(head.encode("ascii") + body)
                status, length = await _read_head(reader)
                return status, await reader.readexactly(length)
        except TimeoutError as error:
            raise BmcError(f"BMC at {self._address} does not answer") from error

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        at = HostPort.parse(self._address, None)
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                reader, writer = await asyncio.open_connection(
                    at.host, at.port, limit=HEAD_BYTES_MAX
                )
        except OSError as error:
            raise BmcError(f"BMC at {self._address} cannot be reached: {error}") from error
        try:
            yield reader, writer
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise BmcError(f"BMC at {self._address} broke off its answer") from error
        finally:
            writer.close()

    @property
    def _address(self) -> str:
        address = self.target.attributes.get("bmc")
        if address is None:
            raise HapteraError(
                "has no attribute bmc", where=str(self.target.entity), do="give ADDRESS:PORT"
            )
        return address


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, int]:
    """The status and the length of the body, which is 0 where none is given."""
    first, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not _is_number(words[1]):
        raise BmcError("BMC does not speak HTTP")
    headers = {name.lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)}
    length = headers.get("content-length", "0")
    if not _is_number(length) or int(length) > BODY_BYTES_MAX:
        raise BmcError(f"BMC answers with {length} bytes, more than {BODY_BYTES_MAX}")
    return int(words[1]), int(length)


async def _read_events(reader: asyncio.StreamReader) -> AsyncIterator[PowerName]:
    """Each line's power; empty ones only tell that the stream lives."""
    while True:
        try:
            async with asyncio.timeout(SILENCE_S_MAX):
                line = await reader.readuntil(b"\n")
        except TimeoutError as error:
            raise BmcError("the stream of events fell silent") from error
        if line.strip():
            yield _decode_power(line)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _decode_power(body: bytes) -> PowerName:
    try:
        return msgspec.json.decode(body, type=PowerState).power
    except (ValueError, RecursionError) as error:
        raise BmcError(f"BMC reports no power state: {error}") from error


def _problem(body: bytes) -> str:
    """What the BMC says is wrong, in its own words where it has any."""
    try:
        return msgspec.json.decode(body, type=BmcProblem).error
    except (ValueError, RecursionError):
        return "no reason given"
