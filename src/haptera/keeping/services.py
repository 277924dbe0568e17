"""The looks and steps of every kind that runs commands on a node: services, replicas of groups."""

import asyncio
import contextlib
import errno
import os
import shlex
import shutil
import signal
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from haptera.keeping import keeper
from haptera.keeping.gate import gate_path
from haptera.keeping.home import Home, ServiceRecord, send_all, session
from haptera.keeping.readiness import ServicePlace, unanswered
from haptera.kinds import node, service
from haptera.kinds.node import Agent
from haptera.kinds.service import Run, parse_ready
from haptera.sdk import (
    ANY,
    Applied,
    Conditions,
    HapteraError,
    Module,
    Privilege,
    Refused,
    Target,
    Variable,
)

# A step's whole effect comes within its `late_s`, the SIGKILL after a SIGTERM in vain included.
LATE_S: Final = 2
STOP_GRACE_S: Final = 1.5
# How long a keeper may take to write down how its service ended.
KEEPER_ENDS_WITHIN_S: Final = 1
# How often a service that does not run is looked at for a start.
WATCH_STOPPED_EVERY_S: Final = 0.2
# How often what does not answer is asked, and how long a start, and a wait for it, go on asking.
ASK_EVERY_S: Final = 0.5
START_READY_WITHIN_S: Final = 8
READY_WITHIN_S: Final = 50
# What runs, whether or not it answers.
UP: Final = (Run.RUNNING, Run.UNREADY)
# What a site has run on its nodes: programs that serve, as any user, with devices of theirs.
KEEPS: Final = (Privilege.ROOT, Privilege.PORTS, Privilege.RAW_SOCKETS, Privilege.DEVICES)
PATH_DEFAULT: Final = "/usr/local/bin:/usr/bin:/bin"

# What the link by which it begins says before the reason for which it has not.
UNBEGUN: Final = "not: "
STATELESS: Final = "it waits for the state of its group"


@dataclass(frozen=True, slots=True)
class Service:
    """One service on this node: what it should be, where it is, and its environment.

    `limits` are for its keeper; while the file `barred` is there, it is not started. Where it
    `begins`, it is not ready before that link, to nothing, names its process; till then it may say
    why not.
    """

    target: Target
    home: Home
    told: Mapping[str, object] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    barred: Path | None = None
    begins: Path | None = None

    @property
    def unbegun(self) -> str | None:
        """The reason for which the present process has not begun; None: it has what it needs."""
        record = self.home.record()
        if self.begins is None or record is None:
            return None
        said = ""
        with contextlib.suppress(OSError):  # not there, or what the service has put in its place
            said = os.readlink(self.begins)
        if said == str(record.service):
            return None
        waits = "it has not begun on its channels"
        why = said.removeprefix(UNBEGUN) if said.startswith(UNBEGUN) else STATELESS
        return f"{waits}: {why}"


Kept = TypeVar("Kept", bound=Service)


def serve(
    module: Module[Kept], running: Variable[service.Run], in_force: Variable[Applied]
) -> None:
    """Have a module look at these variables of a kind that runs commands, and change them."""
    run, applied = module.serves(running), module.serves(in_force)
    up: Conditions = {running: UP}
    agent_up: Conditions = {node.agent: Agent.UP}
    run.look(
        every_s=10,
        outcomes=(Run.STOPPED, Run.RUNNING, Run.FAILED, Run.UNREADY),
        requires=agent_up,
    )(look_run)
    run.watch(watch_run)
    applied.look(
        every_s=30, outcomes=(Applied.STALE, Applied.CURRENT), requires={**up, **agent_up}
    )(look_applied)
    starts = run.goes((Run.STOPPED, Run.FAILED), Run.RUNNING)
    follows = applied.goes(ANY, Applied.CURRENT, expected=True)
    module.step(starts, follows, within_s=10, late_s=LATE_S)(start)
    run.step(Run.UNREADY, Run.RUNNING, within_s=60)(await_answer)
    run.step(UP, Run.STOPPED, within_s=10, late_s=LATE_S, disruptive=True)(stop)
    run.step(Run.FAILED, Run.STOPPED, within_s=LATE_S)(let_be)
    replaces = applied.goes(Applied.STALE, Applied.CURRENT, expected=True)
    module.step(replaces, within_s=20, late_s=LATE_S, requires=up, disruptive=True)(replace)


async def look_run(one: Service) -> Run:
    found = one.home.run()
    if found is not Run.RUNNING:
        # Its keeper may be about to write down how it ended.
        await keeper_settled(one.home)
        found = one.home.run()
    if found is Run.FAILED:
        one.target.note(one.home.how_it_ended())
    if found is Run.RUNNING and (why := await not_ready(one)) is not None:
        one.target.note(why)
        return Run.UNREADY
    return found


async def watch_run(one: Service) -> AsyncIterator[Run]:
    told: tuple[Run, ServiceRecord | None] | None = None
    while True:
        seen = await look_run(one)
        record = one.home.record()
        # One that was started and died between two looks stands as before, and is reported again.
        if (seen, record) != told:
            told = seen, record
            yield seen
        if seen is Run.RUNNING and record is not None:
            await record.service.ends(within_s=None)
        else:
            await asyncio.sleep(ASK_EVERY_S if seen is Run.UNREADY else WATCH_STOPPED_EVERY_S)


async def look_applied(one: Service) -> str:
    record = one.home.record()
    if record is None or not record.service.lives:
        raise HapteraError("it does not run, so nothing is in force")
    return record.digest


async def start(one: Service) -> None:
    command = words_of(one.target)
    if one.barred is not None and one.barred.exists():
        raise Refused("its node is held, because it is about to be disrupted")
    record = await keeper_settled(one.home)
    if record is None or not record.service.lives:
        check_port(one.target)
    one.home.make()
    one.home.limit(one.limits)
    began = await one.home.keep(one.target.digest, command, environment(one))
    if began.status == keeper.NOT_EXECUTED and began.complaints:
        raise Refused(began.errors)
    if began.status not in (0, keeper.ALREADY_RUNS):
        raise HapteraError(began.errors or f"status {began.status}")
    await comes_to_answer(one, START_READY_WITHIN_S)


async def await_answer(one: Service) -> None:
    """Give time to a process that does not answer yet, or no longer, and leave it alone."""
    await comes_to_answer(one, READY_WITHIN_S)


async def stop(one: Service) -> None:
    record = one.home.record()
    if record is None:
        return
    with session(record.service) as members:
        one.home.expect_end()
        send_all(members, signal.SIGTERM)
        await record.service.ends(STOP_GRACE_S)
        send_all(members, signal.SIGKILL)
    await record.service.ends(KEEPER_ENDS_WITHIN_S)
    await record.keeper.ends(KEEPER_ENDS_WITHIN_S)


async def let_be(one: Service) -> None:
    """A failure that nobody wants mended is over."""
    one.home.expect_end()


async def replace(one: Service) -> None:
    # A service that runs is not stopped for one that cannot.
    check_command(words_of(one.target)[0])
    await stop(one)
    try:
        await start(one)
    except Refused as refusal:
        raise HapteraError(str(refusal)) from refusal  # the old one is stopped all the same


async def comes_to_answer(one: Service, within_s: float) -> None:
    """Wait until the service is ready, has ended, or the time is over: a look tells which."""
    record = one.home.record()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while record is not None and record.service.lives and await not_ready(one) is not None:
                await record.service.ends(ASK_EVERY_S)


async def not_ready(one: Service) -> str | None:
    """The reason for which it is not ready, where it is said what that takes."""
    said, port = one.target.values.get("ready"), one.target.values.get("port")
    if (why := one.unbegun) is not None:
        return why
    if said is None:
        return None
    address = one.target.attributes.get("node.address") or "127.0.0.1"
    place = ServicePlace(
        address, None if port is None else int(port), one.home.path, environment(one)
    )
    return await unanswered(parse_ready(str(said)), place)


async def keeper_settled(home: Home) -> ServiceRecord | None:
    """The record, once the keeper of a service that ended has written down how."""
    record = home.record()
    if record is not None and not record.service.lives:
        await record.keeper.ends(KEEPER_ENDS_WITHIN_S)
    return record


def words_of(target: Target) -> list[str]:
    """The command, split as a shell would, but run by none.

    Raises:
        Refused: there is none, or it cannot be split.
    """
    command = target.values.get("command")
    try:
        words = shlex.split(str(command or ""))
    except ValueError as error:
        raise Refused(f"the command cannot be split into words: {error}") from error
    if not words:
        raise Refused("no command is desired")
    return words


def check_command(command: str) -> None:
    """See that there is such a command; one that is named from the service's folder may come.

    Raises:
        Refused: there is none.
    """
    found = shutil.which(command, path=os.environ.get("PATH", PATH_DEFAULT))
    if found is None and ("/" not in command or os.path.isabs(command)):
        raise Refused(f"{command}: there is no such command")


def check_port(target: Target) -> None:
    """See that nobody else has the port that the service is to answer at.

    Raises:
        Refused: somebody has.
    """
    port, address = target.values.get("port"), target.attributes.get("node.address", "")
    if port is None:
        return
    flags = socket.AI_PASSIVE | socket.AI_NUMERICHOST
    found = []
    with contextlib.suppress(OSError):  # an address that is a name is not looked up
        found = socket.getaddrinfo(address or None, int(port), type=socket.SOCK_STREAM, flags=flags)
    for family, kind, protocol, _, place in found:
        if _is_taken(socket.socket(family, kind, protocol), place):
            raise Refused(f"port {port} is taken already, at {place[0]}")


def _is_taken(free: socket.socket, place: tuple[Any, ...]) -> bool:
    with free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            free.bind(place)  # refused where anybody listens
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def environment(one: Service) -> dict[str, str]:
    """All that the service finds in its environment."""
    target = one.target
    known = {
        "PATH": os.environ.get("PATH", PATH_DEFAULT),
        "HAPTERA_SERVICE": target.name,
        "HAPTERA_NODE": target.node,
        "HAPTERA_ADDRESS": target.attributes.get("node.address"),
        "HAPTERA_PORT": target.values.get("port"),
        "HAPTERA_JOBS": gate_path(target.run_dir),
        **one.told,
    }
    return {name: str(value) for name, value in known.items() if value is not None}
