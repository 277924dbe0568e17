"""What the tests of the zygote fork: fork targets, and small modules."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from haptera.kinds import node
from haptera.kinds.node import Busy, Power
from haptera.sdk import Module, Refused, Target

# Open in a zygote that imports this; no process that it forks may have it.
_held = os.open(os.devnull, os.O_RDONLY)


def say(arguments: dict[str, Any], descriptors: list[int]) -> None:
    os.write(descriptors[0], str(arguments["text"]).encode())


def end_with(arguments: dict[str, Any], descriptors: list[int]) -> None:
    raise SystemExit(arguments["status"])


def wait(arguments: dict[str, Any], descriptors: list[int]) -> None:
    while True:
        signal.pause()


def describe(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Tell what the process was given, as one line of text."""
    inherited = [int(name) for name in os.listdir("/proc/self/fd")]
    others = [one for one in inherited if one > 2 and one not in descriptors and is_open(one)]
    caught = [
        int(number)
        for number in signal.valid_signals()
        if number not in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
        and signal.getsignal(number) != signal.SIG_DFL
    ]
    mask = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
    os.write(descriptors[0], f"{others} {caught} {mask}".encode())


def is_open(descriptor: int) -> bool:
    """The descriptor of a listing is in the listing, but closed by now."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def print_and_fail(arguments: dict[str, Any], descriptors: list[int]) -> None:
    sys.stdout.write("said on the way\n")
    raise ValueError("the last word")


def connect(target: Target) -> Target:
    return target


module = Module("trial", connect=connect)
power = module.serves(node.power)
busy = module.serves(node.busy)


@power.look(outcomes=(Power.OFF, Power.ON))
async def look(target: Target) -> Power:
    return Power(target.attributes["power"])


@power.step(Power.OFF, Power.ON, within_s=1, enrols=True)
async def switch_on(target: Target) -> None:
    assert target.boot is not None
    (target.run_dir / "token").write_text(target.boot.token)


@busy.look(outcomes=(Busy.FREE,))
async def look_busy(target: Target) -> Busy:
    babble()
    return Busy.FREE


@module.hold
async def hold(target: Target) -> None:
    if target.attributes["power"] == "on":
        raise Refused("2 jobs run")
    (target.run_dir / "held").touch()


@module.release
async def release(target: Target) -> None:
    (target.run_dir / "held").unlink(missing_ok=True)


def babble() -> None:
    """Do what no module should: write rubbish to the daemon."""
    os.write(link(), b"\xff" * 8)


def link() -> int:
    """The descriptor of the link to the daemon, which is no module's business.

    It was there before the sockets of the process's own loop.
    """
    return min(
        int(name)
        for name in os.listdir("/proc/self/fd")
        if is_open(int(name)) and Path(f"/proc/self/fd/{name}").is_socket()
    )
