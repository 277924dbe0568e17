"""Services: start, stop and replace a command on this node, and see how it fares."""

import asyncio
import os
import shlex
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from haptera.kinds import node, service
from haptera.kinds.node import Agent
from haptera.kinds.service import Run
from haptera.modules.jobs.gate import gate_path
from haptera.modules.service import keeper
from haptera.modules.service.home import Home, Record, home_of, send_all, session
from haptera.sdk import ANY, SELF, Applied, Module, Refused, Target

# A step's whole effect comes within its `late_s`, the SIGKILL after a SIGTERM in vain included.
LATE_S: Final = 2
STOP_GRACE_S: Final = 1.5
# How long a keeper may take to write down how its service ended.
KEEPER_ENDS_WITHIN_S: Final = 1
# How often a service that does not run is looked at for a start.
WATCH_STOPPED_EVERY_S: Final = 0.2
PATH_DEFAULT: Final = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Service:
    """One service on this node: what it should be, and where it is."""

    target: Target
    home: Home


def connect(target: Target) -> Service:
    return Service(target, home_of(target.run_dir, target.name))


module = Module("service", connect=connect, context=SELF)
run = module.serves(service.run)
applied = module.serves(service.applied)


@run.look(
    every_s=10, outcomes=(Run.STOPPED, Run.RUNNING, Run.FAILED), requires={node.agent: Agent.UP}
)
async def look_run(one: Service) -> Run:
    await keeper_settled(one.home)
    found = one.home.run()
    if found is Run.FAILED:
        one.target.note(one.home.how_it_ended())
    return found


@run.watch
async def watch_run(one: Service) -> AsyncIterator[Run]:
    told: Run | None = None
    while True:
        seen = await look_run(one)
        if seen is not told:
            told = seen
            yield seen
        record = one.home.record()
        if seen is Run.RUNNING and record is not None:
            await record.service.ends(within_s=None)
        else:
            await asyncio.sleep(WATCH_STOPPED_EVERY_S)


@applied.look(
    every_s=30,
    outcomes=(Applied.STALE, Applied.CURRENT),
    requires={service.run: Run.RUNNING, node.agent: Agent.UP},
)
async def look_applied(one: Service) -> str:
    record = one.home.record()
    if record is None or not record.service.lives:
        raise RuntimeError("it does not run, so nothing is in force")
    return record.digest


@module.step(
    run.goes((Run.STOPPED, Run.FAILED), Run.RUNNING),
    applied.goes(ANY, Applied.CURRENT, expected=True),
    within_s=10,
    late_s=LATE_S,
)
async def start(one: Service) -> None:
    command = words_of(one.target)
    await keeper_settled(one.home)
    one.home.make()
    process = await asyncio.create_subprocess_exec(
        *keeper.command_line(one.target.digest, command),
        cwd=one.home.path,
        env=environment(one.target),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    _, fault = await process.communicate()
    if process.returncode not in (0, keeper.ALREADY_RUNS):
        raise RuntimeError(fault.decode(errors="replace") or f"status {process.returncode}")


@run.step(Run.RUNNING, Run.STOPPED, within_s=10, late_s=LATE_S)
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


@run.step(Run.FAILED, Run.STOPPED, within_s=LATE_S)
async def let_be(one: Service) -> None:
    """A failure that nobody wants mended is over."""
    one.home.expect_end()


@module.step(
    applied.goes(Applied.STALE, Applied.CURRENT, expected=True),
    within_s=20,
    late_s=LATE_S,
    requires={service.run: Run.RUNNING},
)
async def replace(one: Service) -> None:
    words_of(one.target)  # a service that runs is not stopped for one that cannot
    await stop(one)
    await start(one)


async def keeper_settled(home: Home) -> Record | None:
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


def environment(target: Target) -> dict[str, str]:
    """All that the service finds in its environment."""
    known = {
        "PATH": os.environ.get("PATH", PATH_DEFAULT),
        "HAPTERA_SERVICE": target.name,
        "HAPTERA_NODE": target.node,
        "HAPTERA_ADDRESS": target.attributes.get("node.address"),
        "HAPTERA_PORT": target.values.get("port"),
        "HAPTERA_JOBS": gate_path(target.run_dir),
    }
    return {name: str(value) for name, value in known.items() if value is not None}
