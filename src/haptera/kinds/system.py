"""What a node's users see: an image that runs on the node, and is replaced as a whole."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from haptera.kinds import node
from haptera.kinds.service import check_command
from haptera.model.declared.desired_check import between
from haptera.model.declared.meaning import Meaning
from haptera.model.declared.schema import Applied, Kind, Plain, Variable
from haptera.model.entity import check_name
from haptera.model.errors import HapteraError

ATTEMPTS_MAX = 1_000_000
_LIMIT: Final = re.compile(
    r"memory (?P<memory_mb>[1-9]\d{0,6})(?P<unit>MB|GB)|cpu (?P<cpu_percent>[1-9]\d{0,5})%"
    r"|pids (?P<pids>[1-9]\d{0,6})"
)
_MB_PER_GB: Final = 1_024


@dataclass(frozen=True, slots=True)
class SystemLimits:
    """What all processes of a system together may take, where it is limited; 100 % is one core."""

    memory_mb: int | None = None
    cpu_percent: int | None = None
    pids: int | None = None


def parse_limits(text: str) -> SystemLimits:
    """Read `memory SIZE`, `cpu PERCENT`, `pids COUNT`, or several of them.

    >>> parse_limits("memory 2GB, cpu 150%, pids 500")
    SystemLimits(memory_mb=2048, cpu_percent=150, pids=500)

    Raises:
        HapteraError: it is none of these, or something is there twice.
    """
    found: dict[str, int] = {}
    for item in text.split(","):
        match = _LIMIT.fullmatch(item.strip())
        if match is None:
            do = "write memory 512MB, cpu 150% or pids 500"
            raise HapteraError(f"{item.strip()!r} is not a limit", do=do)
        name = match.lastgroup if match.lastgroup != "unit" else "memory_mb"
        assert name is not None, "each alternative has a group"
        if name in found:
            raise HapteraError(f"{item.strip()!r} is there twice", do="write it once")
        found[name] = int(match[name]) * (_MB_PER_GB if match["unit"] == "GB" else 1)
    return SystemLimits(**found)


class SystemRun(StrEnum):
    UNKNOWN = "unknown"
    STOPPED = "stopped"
    RUNNING = "running"
    FAILED = "failed"


run = Variable(
    "system",
    "run",
    SystemRun,
    {SystemRun.UNKNOWN: 0, SystemRun.STOPPED: 1, SystemRun.RUNNING: 2, SystemRun.FAILED: 3},
)
# Whether the image that runs is the one that is desired.
applied = Variable(
    "system",
    "applied",
    Applied,
    {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2},
)
# Whether it lies on the node, verified and mounted, ready to be started; and the spare with it,
# unless that does not run there.
staged = Variable(
    "system",
    "staged",
    Applied,
    {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2},
)

# Whether the desired image was tried on this node and found not to run there.
refused = Variable(
    "system",
    "refused",
    Applied,
    {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2},
)
# The name of an image, or its digest, `sha256:…`.
image = Plain(
    "system",
    "image",
    str,
    size_bytes_max=80,
    compared_by=(applied.name, staged.name, refused.name),
)
# Another one that is kept ready beside it, so that to change over takes no more than the flip.
spare = Plain("system", "spare", str, size_bytes_max=80, compared_by=(staged.name,))
# Counted up where what was refused is to be tried once more.
attempt = Plain("system", "attempt", int, 8, between(1, ATTEMPTS_MAX), compared_by=(refused.name,))
# A command in the system; until it has succeeded, a system that was just started is not proven.
health = Plain("system", "health", str, 200, check_command, compared_by=(), meaning=Meaning.COMMAND)
# What it may take, from its next start on.
limits = Plain("system", "limits", str, 64, parse_limits, compared_by=())
# The roll that this system is in, which exchanges its image and its spare.
roll = Plain("system", "roll", str, check=check_name, compared_by=())

kind = Kind(
    "system",
    (run, applied, staged, refused),
    plain=(image, spare, attempt, health, limits, roll),
    borrows=(node.agent,),
    leaves=((run, SystemRun.STOPPED),),
    in_force=(applied, staged),
)
