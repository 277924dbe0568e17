"""A node's BMC: power over HTTP, with delays, refusals and a record of every command and read."""

import asyncio
import contextlib
import socket
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from haptera.lab import http, record
from haptera.lab.http import Request, Response
from haptera.lab.orders import (
    MESSAGE_BYTES_MAX,
    BmcFaults,
    GivenFaults,
    Lie,
    Notice,
    Order,
    PowerName,
)
from haptera.runtime import clock

CONNECTIONS_MAX: Final = 64
# A stream of events says something at least this often, so that its readers notice its end.
HEARTBEAT_S: Final = 5.0
WRITE_S_MAX: Final = 5.0
# How long a silent BMC keeps a client waiting.
SILENCE_S_MAX: Final = 60.0
# How long the chassis may take to change power; processes end in less.
EFFECT_S_MAX: Final = 15.0
# How long the power stays on where the BMC flaps.
FLAP_S: Final = 3.0

Body = TypeVar("Body", Order, GivenFaults)


@dataclass(frozen=True, slots=True)
class BmcConfig:
    """Where one BMC writes its record, and the faults that it begins with."""

    commands: Path
    faults: BmcFaults


def run_bmc(config: BmcConfig, listener: socket.socket, chassis: socket.socket) -> None:
    """Serve until the chassis is gone."""
    listener.settimeout(0)
    chassis.settimeout(0)
    try:
        asyncio.run(_Bmc(config, chassis).serve(listener))
    except* (ChassisGoneError, ResetError):
        pass  # There is nothing left to control, or the chassis starts another.


class BodyError(Exception):
    """The body of a request is not what it should be."""


class ChassisGoneError(Exception):
    """The other end of the chassis' socket is closed."""


class ResetError(Exception):
    """The BMC starts anew, in the middle of whatever it does."""


class _Bmc:
    """One BMC. `in_flight` is the command that was accepted and has had no effect yet.

    `elsewhere` is the power of the machine that it takes for its own, where it goes astray.
    """

    def __init__(self, config: BmcConfig, chassis: socket.socket) -> None:
        self._commands = config.commands
        self._faults = config.faults
        self._chassis = chassis
        self._power: PowerName = "off"
        self._elsewhere: PowerName = "off"
        self._changes = 0
        self._changed = asyncio.Condition()
        self._in_flight: Order | None = None
        self._effect: asyncio.Future[None] | None = None
        self._connections = 0

    async def serve(self, listener: socket.socket) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            await self._hear_chassis()  # It tells the power at first.
            tasks.create_task(self._follow_chassis())
            await asyncio.start_server(self._accept, sock=listener, limit=http.HEAD_BYTES_MAX)

    # The chassis

    async def _follow_chassis(self) -> None:
        while True:
            await self._hear_chassis()

    async def _hear_chassis(self) -> None:
        data = await asyncio.get_running_loop().sock_recv(self._chassis, MESSAGE_BYTES_MAX)
        if not data:
            raise ChassisGoneError
        notice = msgspec.json.decode(data, type=Notice)
        order = self._in_flight
        if order is not None and self._effect is not None and notice.command == order.command:
            # Before any read can show it, so that the record has cause before consequence.
            self._record({"command": order.command, "effect": notice.power})
            self._effect.set_result(None)
            self._effect = self._in_flight = None
        elif notice.command is None and notice.power == "off" != self._power:
            self._record({"found": "off"})  # The machine's init has ended.
        if notice.power == "on" and self._faults.lies is Lie.FLAPS:
            self._tasks.create_task(self._flap())
        self._power = notice.power
        await self._tell_change()

    async def _tell_change(self) -> None:
        async with self._changed:
            self._changes += 1
            self._changed.notify_all()

    async def _flap(self) -> None:
        await asyncio.sleep(FLAP_S)
        self._record({"flaps": "off"})
        await self._obey(Order("off", "flaps"))

    async def _carry_out(self, order: Order) -> None:
        await asyncio.sleep(self._faults.delay_ms / 1000)
        match self._faults.lies:
            case Lie.IDLE:
                self._in_flight = None
            case Lie.ASTRAY:
                self._record({"command": order.command, "elsewhere": order.power})
                self._elsewhere, self._in_flight = order.power, None
                await self._tell_change()
            case Lie.RESETS:
                await self._have_effect(order)
                raise ResetError
            case _:
                await self._have_effect(order)

    async def _have_effect(self, order: Order) -> None:
        effect = self._effect = asyncio.get_running_loop().create_future()
        # In vain: this process ends with the error, and a new BMC reads what the power is.
        async with asyncio.timeout(EFFECT_S_MAX):
            await self._obey(order)
            await effect

    async def _obey(self, order: Order) -> None:
        """Have the chassis do it."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._chassis, msgspec.json.encode(order))

    # Clients

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.create_task(self._attend(reader, writer))

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            request = await http.read_request(reader)
            if self._faults.silent and not _sets_faults(request):
                self._note(request)
                async with asyncio.timeout(SILENCE_S_MAX):
                    await reader.read(1)
            elif request is not None:
                await self._answer(request, writer)
        except (TimeoutError, ConnectionError):
            pass  # This client waits no longer, or has waited long enough.
        finally:
            self._connections -= 1
            writer.close()

    def _note(self, request: Request | Response | None) -> None:
        """Put on record what was asked, though nobody is answered."""
        match request:
            case Request("GET", "/power"):
                self._record({"read": "unanswered"})
            case Request("POST", "/power", body):
                with contextlib.suppress(BodyError):
                    order = _parse(body, Order)
                    row = {"command": order.command, "power": order.power}
                    self._record({**row, "verdict": "unanswered"})
            case _:
                pass

    async def _answer(self, request: Request | Response, writer: asyncio.StreamWriter) -> None:
        if self._connections > CONNECTIONS_MAX:
            request = http.refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")
        if isinstance(request, Request) and (request.method, request.path) == ("GET", "/events"):
            await self._stream(writer)
        else:
            response = self._respond(request)
            if response.status is HTTPStatus.ACCEPTED and self._faults.lies is Lie.RESETS:
                async with asyncio.timeout(EFFECT_S_MAX):
                    await asyncio.Event().wait()  # Nobody is answered before it starts anew.
            await _send(writer, http.encode(response))

    def _respond(self, request: Request | Response) -> Response:
        if isinstance(request, Response):
            return request
        match request.method, request.path:
            case "GET", "/power":
                return self._read_power()
            case "POST", "/power":
                return self._take_order(request.body)
            case "POST", "/faults":
                return self._set_faults(request.body)
            case _:
                return http.refuse(
                    HTTPStatus.NOT_FOUND, "there are GET and POST /power, GET /events, POST /faults"
                )

    def _read_power(self) -> Response:
        self._record({"read": self._shown})
        return Response(HTTPStatus.OK, {"power": self._shown})

    @property
    def _shown(self) -> PowerName:
        return self._elsewhere if self._faults.lies is Lie.ASTRAY else self._power

    def _take_order(self, body: bytes) -> Response:
        try:
            order = _parse(body, Order)
        except BodyError as error:
            return http.refuse(HTTPStatus.BAD_REQUEST, str(error))
        refusal = self._faults.refuse
        if self._in_flight is not None:
            refusal = f"busy with command {self._in_flight.command}"
        verdict = "accepted" if refusal is None else "refused"
        self._record({"command": order.command, "power": order.power, "verdict": verdict})
        if refusal is not None:
            return http.refuse(HTTPStatus.CONFLICT, refusal)
        self._in_flight = order
        self._tasks.create_task(self._carry_out(order))
        return Response(HTTPStatus.ACCEPTED, {"command": order.command})

    def _set_faults(self, body: bytes) -> Response:
        try:
            given = _parse(body, GivenFaults)
        except BodyError as error:
            return http.refuse(HTTPStatus.BAD_REQUEST, str(error))
        self._faults = given.over(self._faults)
        return Response(HTTPStatus.OK, msgspec.to_builtins(self._faults))

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        """Tell the power now and each time it changes; the body lasts as long as the connection."""
        await _send(writer, http.start_line(HTTPStatus.OK) + b"\r\n")
        told = -1
        while True:
            line = b"\n"
            if told != self._changes:
                told = self._changes
                line = msgspec.json.encode({"power": self._shown}) + b"\n"
            await _send(writer, line)
            await self._wait_for_change(told)

    async def _wait_for_change(self, told: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT_S), self._changed:
                await self._changed.wait_for(lambda: told != self._changes)

    def _record(self, row: dict[str, str]) -> None:
        record.append(self._commands, {"at_ns": clock.now_ns(), **row})


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    async with asyncio.timeout(WRITE_S_MAX):
        writer.write(data)
        await writer.drain()


def _sets_faults(request: Request | Response | None) -> bool:
    return isinstance(request, Request) and request.path == "/faults"


def _parse(body: bytes, shape: type[Body]) -> Body:
    try:
        return msgspec.json.decode(body, type=shape)
    except (ValueError, RecursionError) as error:
        raise BodyError(str(error)) from error
