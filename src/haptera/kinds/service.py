"""A command that should run on a node, for as long as it is desired."""

import re
import shlex
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from haptera.kinds import node
from haptera.model.declared.desired_check import between
from haptera.model.declared.meaning import Meaning
from haptera.model.declared.schema import Applied, Kind, Plain, Serving, Variable
from haptera.model.errors import HapteraError, ParseError

PORT_MAX: Final = 65_535
COUNT_MAX: Final = 1_000_000
PERCENT_MAX: Final = 100


class Run(StrEnum):
    """What is `unready` runs, and does not answer as its plain data `ready` says that it should."""

    UNKNOWN = "unknown"
    STOPPED = "stopped"
    RUNNING = "running"
    FAILED = "failed"
    UNREADY = "unready"


class Way(StrEnum):
    """How a service is asked whether it is ready."""

    HTTP = "http"
    TCP = "tcp"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class ServiceReady:
    """What a service answers once it is ready: a path, at a port or its own; or a command."""

    way: Way
    what: str
    port: int | None

    def __str__(self) -> str:
        port = "" if self.port is None else f"port {self.port}"
        return " ".join(filter(None, [self.way, self.what, port]))


def parse_ready(text: str) -> ServiceReady:
    """As it is written: `http /path`, `http :8080/path`, `tcp`, `tcp 8080`, `command WORDS`.

    >>> parse_ready("http :8080/health")
    ServiceReady(way=<Way.HTTP: 'http'>, what='/health', port=8080)

    Raises:
        HapteraError: it is none of these.
    """
    match = _READY.fullmatch(text.strip())
    if match is None:
        do = "write http /PATH, http :PORT/PATH, tcp, tcp PORT, or command WORDS"
        raise HapteraError(f"{text!r} is not a way to check a service", do=do)
    path, command = match["path"], match["command"]
    if command:
        check_command(command)
    port = match["port"] or match["at"]
    way = Way.HTTP if path else Way.COMMAND if command else Way.TCP
    if port is not None:
        between(1, PORT_MAX)(int(port))
    return ServiceReady(way, path or command or "", None if port is None else int(port))


def check_command(command: str) -> None:
    """See that a command can be split into words.

    Raises:
        HapteraError: it cannot.
    """
    try:
        shlex.split(command)
    except ValueError as error:
        raise ParseError(f"the command cannot be split into words: {error}") from error


@dataclass(frozen=True, slots=True)
class UnavailableMax:
    """How many of a service's instances may be away at once: so many, or such a share of them."""

    at_once: int | None = None
    share: int | None = None


def parse_unavailable(text: str) -> UnavailableMax:
    """Read a number or a share.

    >>> parse_unavailable("2"), parse_unavailable("25%")
    (UnavailableMax(at_once=2, share=None), UnavailableMax(at_once=None, share=25))

    Raises:
        HapteraError: it is neither, or none could ever be replaced by it.
    """
    match = re.fullmatch(r"(?P<number>[0-9]{1,6})\s*(?P<percent>%?)", text.strip())
    if match is None:
        raise ParseError(f"{text!r} is neither a number nor a share", do="write 2, or 25%")
    number = int(match["number"])
    between(1, PERCENT_MAX if match["percent"] else COUNT_MAX)(number)
    return UnavailableMax(share=number) if match["percent"] else UnavailableMax(at_once=number)


_READY: Final = re.compile(
    r"http\s+(?::(?P<at>[0-9]{1,5}))?(?P<path>/[!-~]*)|tcp(?:\s+(?P<port>[0-9]{1,5}))?"
    r"|command\s+(?P<command>\S.*)"
)

run = Variable(
    "service",
    "run",
    Run,
    {Run.UNKNOWN: 0, Run.STOPPED: 1, Run.RUNNING: 2, Run.FAILED: 3, Run.UNREADY: 4},
)
applied = Variable(
    "service",
    "applied",
    Applied,
    {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2},
)

command = Plain("service", "command", str, size_bytes_max=512, meaning=Meaning.COMMAND)
port = Plain("service", "port", int, size_bytes_max=8, check=between(1, PORT_MAX))
ready = Plain("service", "ready", str, 128, parse_ready, meaning=Meaning.COMMAND)
max_unavailable = Plain("service", "max_unavailable", str, 8, parse_unavailable, compared_by=())

kind = Kind(
    "service",
    (run, applied),
    plain=(command, port, ready, max_unavailable),
    borrows=(node.agent,),
    leaves=((run, Run.STOPPED),),
    serves=Serving(run, Run.RUNNING),
)
