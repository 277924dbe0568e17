"""One virtual machine: a QEMU of its own, which outlives who started it."""

import asyncio
import os
import re
from dataclasses import dataclass, field
from typing import Final

from haptera.modules import recorders
from haptera.modules.console import ConsoleError, ConsoleRecord, record_stream
from haptera.modules.power import PowerName, check_graceful
from haptera.modules.qemu.monitor import HungUpError, MonitorError, command
from haptera.sdk import Command, HapteraError, ProgramPath, Refused, Target
from haptera.sdk.commands import Program
from haptera.sdk.owned_files import owned

# Until the machine is there: QEMU then leaves the process that started it.
START_S_MAX: Final = 15.0
# How long a machine that was asked to end has for it, and how often that is looked at.
END_S_MAX: Final = 5.0
END_READ_S: Final = 0.05
ATTRIBUTE: Final = re.compile(r"\{([a-z_]+)\}")
# QEMU takes what follows a comma for another option.
VALUE: Final = re.compile(r"[\w.:/@+-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class QemuSettings:
    """How each machine is started: `program` with `arguments`, one word each, through no shell.

    In a word `{name}` is the node's name, and `{mac}` its attribute of that name, as any other.
    For a start from the network the words of `network` are added.
    A machine has `graceful_s` to shut down before it is ended. To record consoles gives it another
    serial line, after those of `arguments`.
    """

    arguments: list[Command]
    network: list[Command] = field(default_factory=lambda: [Command("-boot"), Command("once=n")])
    program: ProgramPath = ProgramPath("qemu-system-x86_64")
    graceful_s: float = 30.0
    record_consoles: bool = False

    def __post_init__(self) -> None:
        check_graceful(self.graceful_s)


def connect(target: Target) -> "QemuMachine":
    """The machine of a node; from now on its console is recorded, if consoles are."""
    machine = QemuMachine(target)
    recorders.keep(target, str(machine.console), machine.record_session)
    return machine


class QemuMachine:
    """The machine of one node; the daemon sees to it that only one call at a time is under way."""

    def __init__(self, target: Target) -> None:
        self._settings: QemuSettings = target.settings
        self._target = target
        self._socket = target.run_dir / f"{target.name}.qmp"
        self._pid_file = target.run_dir / f"{target.name}.pid"
        self.console = target.run_dir / f"{target.name}.serial"
        self._added: list[Command] = []

    @property
    def address(self) -> str:
        return str(self._socket)

    @property
    def graceful_s(self) -> float:
        return self._settings.graceful_s

    async def status(self) -> PowerName:
        if not self._runs():
            return "off"
        try:
            await command(self._socket, "query-status")
        except HungUpError:
            await self._end()
            return "off"
        return "on"

    async def boot_from_network_once(self) -> None:
        self._added = self._settings.network

    async def power_on(self) -> None:
        """Start it, as settings and attributes say.

        Raises:
            HapteraError: QEMU is not installed, or others may change the program that settings
                name; or the node lacks an attribute.
            Refused: QEMU does not start with these words.
            MonitorError: it has not started in time.
        """
        if "/" in self._settings.program:
            owned(self._settings.program)
        added, self._added = self._added, []
        words = [_filled(one, self._target) for one in (*self._settings.arguments, *added)]
        try:
            ended = await Program([self._settings.program, *words, *self._own()]).run(START_S_MAX)
        except TimeoutError:
            raise MonitorError(f"QEMU has not started within {START_S_MAX:g} s") from None
        if ended.status != 0:
            raise Refused(f"QEMU does not start: {ended.last_error}")
        recorders.begin(self._target)

    async def ask_to_shut_down(self) -> bool:
        await command(self._socket, "system_powerdown")
        return True

    async def force_off(self) -> None:
        await command(self._socket, "quit")
        await self._end()

    async def record_session(self, record: ConsoleRecord) -> None:
        """Record what the machine sends over its serial line, until it ends.

        Raises:
            ConsoleError: it is off, or was started when no consoles were recorded.
            OSError: the record cannot be written.
        """
        try:
            sent, writer = await asyncio.open_unix_connection(self.console)
        except (FileNotFoundError, ConnectionRefusedError):
            raise ConsoleError("no machine runs that was started with it") from None
        try:
            await record_stream(sent, record)
        finally:
            writer.close()

    async def _end(self) -> None:
        try:
            async with asyncio.timeout(END_S_MAX):
                # It is nobody's child, so nothing reports its end.
                while self._runs():  # noqa: ASYNC110
                    await asyncio.sleep(END_READ_S)
        except TimeoutError:
            raise MonitorError(f"QEMU has not ended within {END_S_MAX:g} s") from None

    def _own(self) -> list[str]:
        # Last, so that they count. QEMU locks its pid file before all else: no machine runs twice.
        files = (self._socket, self._pid_file, self.console)
        socket, pid_file, console = (str(one).replace(",", ",,") for one in files)
        line = f"socket,id=haptera-console,path={console},server=on,wait=off"
        serial = ("-chardev", line, "-serial", "chardev:haptera-console")
        return [
            *(serial if self._settings.record_consoles else ()),
            *("-daemonize", "-display", "none", "-action", "shutdown=poweroff"),
            *("-pidfile", pid_file, "-qmp", f"unix:{socket},server=on,wait=off"),
        ]

    def _runs(self) -> bool:
        """Whether a QEMU holds the machine's pid file; its end, in whatever way, lets it go."""
        try:
            descriptor = os.open(self._pid_file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            os.lockf(descriptor, os.F_TEST, 0)
        except (BlockingIOError, PermissionError):
            return True
        finally:
            os.close(descriptor)
        return False


def _filled(word: str, target: Target) -> str:
    """The word with the node's name and attributes in their places.

    Raises:
        HapteraError: it lacks one, or one would be more to QEMU than a value.
    """

    def fill(place: re.Match[str]) -> str:
        name = place[1]
        value = target.name if name == "name" else target.attributes.get(name)
        where = str(target.entity)
        if value is None:
            do = f"give `{name}`: the settings of module qemu name it"
            raise HapteraError(f"has no attribute {name}", where=where, do=do)
        # Nor does it lead out of the folder that a setting names, or become an option.
        leads_out = ".." in value.split("/") or (value.startswith("-") and place[0] == word)
        if VALUE.fullmatch(value) is None or leads_out:
            do = "use letters, digits and . : / @ + - _ only, no .. and no - first: QEMU reads it"
            raise HapteraError(f"attribute {name} is {value!r}", where=where, do=do)
        return value

    return ATTRIBUTE.sub(fill, word)
