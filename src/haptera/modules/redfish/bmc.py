"""One BMC, asked over Redfish (DMTF DSP0266), and the one system behind it that is the node."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Any, Final, Literal, TypeVar
from weakref import WeakValueDictionary

from haptera.modules import bmc_sensors
from haptera.modules.bmc_sensors import BmcSensor, check_every
from haptera.modules.effects import LackingError, LoginError, NotYetError
from haptera.modules.patience import Patience
from haptera.modules.power import PowerName, check_graceful
from haptera.modules.quirks import Quirk, quirks_by, quirks_of
from haptera.modules.redfish.chassis import LISTED_MAX, Read, chassis_of, places_of, sensors_of
from haptera.modules.redfish.connection import RedfishConnection
from haptera.modules.redfish.documents import Document
from haptera.modules.redfish.event_logs import EventLog, logs_of
from haptera.modules.redfish.exchange import (
    ANSWER_S_MAX,
    CALL_S_MAX,
    RedfishError,
    ServiceAddress,
    Trust,
)
from haptera.modules.redfish.resources import document_at, members_of, reader, resource_at
from haptera.modules.redfish.sessions import SESSIONS_PATH, end_session, sessions
from haptera.modules.redfish.systems import ComputerSystem, ResetAction
from haptera.modules.survey import BmcSurvey
from haptera.sdk import HapteraError, HostPath, Measured, Refused, Secret, Setup, Target
from haptera.sdk.owned_files import owned

# How many BMCs are asked at once: each has a thread while it is.
AT_ONCE: Final = 32
SYSTEMS_PATH: Final = "/redfish/v1/Systems"
# Of so many systems it is seen which one is a machine.
SHOWN_MAX: Final = 4
WORDS_MAX: Final = 300
# How long this process waits at its end for sessions to be ended.
END_S_MAX: Final = 3.0
# After this time no more sensors are read in a round: who looks at the power has to wait for it.
SENSORS_S_MAX: Final = 10.0

# Kinds of reset (DSP2046, ResetType): what a BMC has of these is asked for, the first one first.
ON: Final = ("On", "ForceOn")
# Where there is no other way, its operating system is told by the button.
BUTTON: Final = "PushPowerButton"
SHUT_DOWN: Final = ("GracefulShutdown", BUTTON)
OFF: Final = ("ForceOff", "Off")
# What firmware loads from the network by: PXE, or HTTP of UEFI.
NETWORK: Final = ("Pxe", "UefiHttp")

# Where the only system of a service is, and which of its chassis each system is in.
_paths: Final[dict[ServiceAddress, str]] = {}
_chassis: Final[dict[tuple[ServiceAddress, str], dict[str, bool | None]]] = {}
_patience: Final = Patience()
# Of BMCs that are in use, by their addresses.
_locks: Final = WeakValueDictionary[str, asyncio.Lock]()
_threads: Final = ThreadPoolExecutor(AT_ONCE, "redfish")

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class RedfishSettings:
    """Who asks all BMCs, and by what these are known.

    `auth` is `basic`: the password goes with each request; or `session`: it goes once, and opens
    a session.
    `trust` is `pinned`: the certificate that a BMC had when it was first asked is the one that it
    has to have ever after. It is `verified` where `ca_file`, or the system's list, vouches for it.
    A machine has `graceful_s` to shut down before its power is cut. Its sensors are read each
    `sensors_every_s`.
    """

    user: str
    password: Secret
    auth: Literal["basic", "session"] = "basic"
    trust: Literal["pinned", "verified"] = "pinned"
    ca_file: HostPath = HostPath("")
    graceful_s: float = 30.0
    sensors_every_s: float = 30.0

    def __post_init__(self) -> None:
        check_graceful(self.graceful_s)
        check_every(self.sensors_every_s)
        if self.ca_file and self.trust != "verified":
            raise ValueError("ca_file is for `trust: verified`")


@asynccontextmanager
async def lifespan(setup: Setup) -> AsyncIterator[None]:
    """No session is left behind at any BMC, which has room for few."""
    sessions.open_folder(setup.run_dir)
    try:
        yield
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S_MAX):
                await end_sessions()


async def end_sessions() -> None:
    """End all sessions of this process, as many at a time as there are threads."""
    loop = asyncio.get_running_loop()
    ending = [loop.run_in_executor(_threads, end_session, one, loop.time) for one in sessions.all()]
    await asyncio.gather(*ending)


class RedfishBmc:
    """The BMC of one node; it is asked one thing at a time, by calls and samplers together."""

    def __init__(self, target: Target) -> None:
        settings: RedfishSettings = target.settings
        self.address = target.attributes.get("bmc") or ""
        self.graceful_s = settings.graceful_s
        self.sensors_every_s = settings.sensors_every_s
        self.events_file = target.run_dir / f"{target.name}.events"
        self._one_at_a_time = _locks.setdefault(self.address, asyncio.Lock())
        self._settings = settings
        self._credentials = (settings.user, str(settings.password))
        self._service = _service(target, self.address)
        self._quirks = quirks_of(target)
        self._trust = Trust(
            owned(settings.ca_file) if settings.ca_file else None,
            target.run_dir / f"{target.name}.pin" if settings.trust == "pinned" else None,
        )

    async def status(self) -> PowerName:
        return await self._ask(self._status)

    async def boot_from_network_once(self) -> None:
        await self._ask(self._boot_from_network_once)

    async def power_on(self) -> None:
        await self._ask(lambda connection: self._reset(connection, ON))

    async def ask_to_shut_down(self) -> bool:
        return await self._ask(self._shut_down)

    async def force_off(self) -> None:
        await self._ask(lambda connection: self._reset(connection, OFF))

    async def survey(self) -> BmcSurvey:
        """What it says of itself, with the quirks that haptera heeds."""
        return await self._ask(self._survey)

    @property
    def is_asked(self) -> bool:
        """True while it is asked something."""
        return self._one_at_a_time.locked()

    async def sensors(self) -> Measured:
        """The numbers of all its sensors; what could not be read in time is missing."""
        return bmc_sensors.measured(await self._ask(self._sensors))

    async def event_logs(self) -> list[EventLog]:
        """The entries of its event logs, likewise."""
        return await self._ask(self._event_logs)

    async def _ask(self, work: Callable[[RedfishConnection], Done]) -> Done:
        """What comes of this work in a thread, unless the BMC is to be left alone."""
        known, place = self._credentials, str(self._service.service)
        now = asyncio.get_running_loop().time
        _patience.check(place, known, now())
        try:
            async with self._one_at_a_time:
                done = await self._in_thread(work)
        except LoginError as error:
            _patience.refused(place, known, error, now())
            raise
        except (NotYetError, RedfishError) as error:
            if error.after_s is not None:
                _patience.hold(place, error, now() + error.after_s)
            raise
        _patience.answered(place)
        return done

    async def _in_thread(self, work: Callable[[RedfishConnection], Done]) -> Done:
        loop = asyncio.get_running_loop()
        connection: RedfishConnection | None = None

        def run() -> Done:
            nonlocal connection
            in_session = self._settings.auth == "session"
            with RedfishConnection(
                self._service, self._trust, self._credentials, loop.time, in_session=in_session
            ) as connection:
                return work(connection)

        def hang_up() -> None:
            if connection is not None:
                connection.hang_up()

        # Who answers byte by byte would keep the thread for ever.
        loop.call_later(CALL_S_MAX + ANSWER_S_MAX, hang_up)
        return await loop.run_in_executor(_threads, run)

    # In a thread

    def _status(self, connection: RedfishConnection) -> PowerName:
        system = self._system(connection)
        if system.power is None:
            said = system.shown.text("PowerState")
            raise RedfishError(f"BMC at {self.address} says its power is {said}"[:WORDS_MAX])
        return system.power

    def _survey(self, connection: RedfishConnection) -> BmcSurvey:
        path = self._system(connection).path
        left_s = connection.left_s
        system = self._shown(connection, path)
        latency_s = left_s - connection.left_s
        manager = self._manager(connection, system)
        held = document_at(connection, SESSIONS_PATH).documents("Members")
        return BmcSurvey(
            power=system.power or str(system.shown.text("PowerState")),
            maker=system.maker or None,
            model=system.shown.text("Model"),
            firmware=manager.text("FirmwareVersion"),
            resets=() if system.reset is None else self._resets(connection, system.reset),
            boot_sources=system.boot_sources,
            sessions=f"{len(held)} open" if held else None,
            quirks=sorted(self._quirks | quirks_by(system.maker)),
            latency_s=latency_s,
        )

    def _manager(self, connection: RedfishConnection, system: ComputerSystem) -> Document:
        """The manager that the system names, or the only one there is; empty if neither."""
        managers = system.answer.links("Links", "ManagedBy")
        if not managers:
            with suppress(RedfishError):
                managers = [*members_of(connection, "Managers")]
                managers = managers if len(managers) == 1 else []
        return document_at(connection, managers[0]) if managers else Document({})

    def _sensors(self, connection: RedfishConnection) -> list[BmcSensor]:
        read = reader(connection, SENSORS_S_MAX)
        return [*sensors_of(read, self._chassis(connection, read))]

    def _event_logs(self, connection: RedfishConnection) -> list[EventLog]:
        system = self._system(connection)
        return [*logs_of(reader(connection, SENSORS_S_MAX), system.shown, system.path)]

    def _chassis(self, connection: RedfishConnection, read: Read) -> Iterator[str]:
        """The chassis of the system; all that there are say whose they are, when first asked."""
        system = self._system(connection)
        places = _chassis.get(at := (self._service.service, system.path))
        if places is None:
            listed = list[str]()
            with suppress(RedfishError):
                listed = [*islice(members_of(connection, "Chassis"), LISTED_MAX)]
            places = places_of(system.answer.links("Links", "Chassis"), listed)
            if listed:
                _chassis[at] = places
        return chassis_of(read, system.path, places)

    def _boot_from_network_once(self, connection: RedfishConnection) -> None:
        system = self._system(connection)
        places = [system, *self._settings_of(system, connection)]
        # Where changes of the boot are written is where it is shown, if it is shown there too.
        places.sort(key=lambda one: one is system or one.shown.document("Boot") is None)
        allowed = next((one.boot_sources for one in places if one.boot_sources), ())
        source = _first(NETWORK, allowed)
        if source is None:
            raise Refused(f"it can boot by {_listed(allowed)}, not from the network")
        wish = {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": source}
        if system.boot_mode and Quirk.BOOT_MODE in self._quirks | quirks_by(system.maker):
            wish["BootSourceOverrideMode"] = system.boot_mode
        _change_first(connection, places, {"Boot": wish})

    def _settings_of(
        self, system: ComputerSystem, connection: RedfishConnection
    ) -> Sequence[ComputerSystem]:
        """Where the service wants changes of the system to be written, if elsewhere."""
        if system.settings_path is None:
            return ()
        try:
            return (ComputerSystem.of(connection.read(system.settings_path)),)
        except RedfishError:
            return ()

    def _shut_down(self, connection: RedfishConnection) -> bool:
        system = self._system(connection)
        if system.reset is None or Quirk.NO_SHUTDOWN in self._quirks:
            return False
        kind = _first(SHUT_DOWN, self._resets(connection, system.reset))
        if kind is None:
            return False
        # The button would switch on what is off by now.
        if kind == BUTTON and self._shown(connection, system.path).power != "on":
            return True
        try:
            connection.change("POST", system.reset.path, {"ResetType": kind}, system.answer)
        except LackingError:
            return False
        return True

    def _reset(self, connection: RedfishConnection, wanted: Sequence[str]) -> None:
        self._change_power(connection, self._system(connection), wanted)

    def _change_power(
        self, connection: RedfishConnection, system: ComputerSystem, wanted: Sequence[str]
    ) -> None:
        if system.reset is None:
            raise Refused("it has no action ComputerSystem.Reset")
        allowed = self._resets(connection, system.reset)
        kind = _first(wanted, allowed)
        if kind is None:
            raise Refused(f"it knows resets {_listed(allowed)}, none of {_listed(wanted)}")
        connection.change("POST", system.reset.path, {"ResetType": kind}, system.answer)

    def _resets(self, connection: RedfishConnection, reset: ResetAction) -> Sequence[str]:
        """The kinds of reset that there are, as the system or the action's description says."""
        if reset.allowed or reset.info_path is None:
            return reset.allowed
        parameters = document_at(connection, reset.info_path).documents("Parameters")
        return next(
            (one.texts("AllowableValues") for one in parameters if one.text("Name") == "ResetType"),
            (),
        )

    def _system(self, connection: RedfishConnection) -> ComputerSystem:
        """The node's system: as its attribute says, or the only one that there is.

        Where that is, is kept: what a slow BMC is asked should be asked once.
        """
        kept = self._service.path or _paths.get(self._service)
        if kept is not None:
            try:
                return self._shown(connection, kept)
            except RedfishError as error:
                if self._service.path or error.status != HTTPStatus.NOT_FOUND:
                    raise
        path = self._only_path(connection)
        system = self._shown(connection, path)
        _paths[self._service] = path
        return system

    def _shown(self, connection: RedfishConnection, path: str) -> ComputerSystem:
        return ComputerSystem.of(resource_at(connection, path))

    def _only_path(self, connection: RedfishConnection) -> str:
        # One may be listed twice, with a slash at its end and without.
        listed = [*members_of(connection, "Systems")]
        found = list({one.rstrip("/"): one for one in reversed(listed)}.values())
        if not found:  # As of a BMC that was just switched on.
            raise RedfishError(f"BMC at {self.address} lists no system")
        machines = found
        if 1 < len(found) <= SHOWN_MAX:
            shown = (self._shown(connection, one) for one in found)
            machines = [one.path for one in shown if one.is_machine]
        if len(machines) != 1:
            raise HapteraError(
                f"BMC at {self.address} has {len(found)} systems",
                do=f"name one: bmc: {self._service.service}{SYSTEMS_PATH}/ID",
            )
        return machines[0]


def _change_first(
    connection: RedfishConnection, places: Sequence[ComputerSystem], body: Mapping[str, Any]
) -> None:
    """Change the first of these that can be."""
    *others, last = places
    for one in others:
        try:
            return connection.change("PATCH", one.path, body, one.answer)
        except LackingError:
            continue
    return connection.change("PATCH", last.path, body, last.answer)


def _service(target: Target, address: str) -> ServiceAddress:
    if not address:
        do = "give `bmc: ADDRESS`, ADDRESS:PORT, or either with the path of a system"
        raise HapteraError("has no attribute bmc", where=str(target.entity), do=do)
    return ServiceAddress.parse(address)


def _first(wanted: Sequence[str], allowed: Sequence[str]) -> str | None:
    """The first that the BMC has; where it tells none, the first that is wanted."""
    return next((one for one in wanted if not allowed or one in allowed), None)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)[:WORDS_MAX] or "nothing that it tells"
