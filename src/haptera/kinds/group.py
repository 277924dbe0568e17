"""A group of replicas: one command, run so many times apart from each other, led by one of them."""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from haptera.kinds import service
from haptera.kinds.extensions import node_kind
from haptera.model.declared.desired_check import between, nearest
from haptera.model.declared.meaning import Meaning
from haptera.model.declared.schema import Kind, Plain
from haptera.model.entity import check_name
from haptera.model.errors import Code, HapteraError
from haptera.model.walltime import WALL_S_MAX, parse_duration_ms
from haptera.selectors.nodeset import parse_nodeset

REPLICAS_MAX: Final = 64
# The replicas of a trial have their ranks from here on: none is ever one of the group's own.
TRIAL_RANK_MIN: Final = REPLICAS_MAX
TRIALS_MAX: Final = 8
MOVES_MAX: Final = 8
SAYS_BYTES_MAX: Final = 96
# A service has more: of a replica more else is told, in one datagram.
COMMAND_BYTES_MAX: Final = 360
LIMITS_BYTES_MAX: Final = 64
HEARS_BYTES_MAX: Final = 48
CARRIER_BYTES_MAX: Final = 40
COMPARE_BYTES_MAX: Final = 40
SILENT_MS_MIN: Final = 1_000
SILENT_MS_MAX: Final = 86_400_000
MEMORY_MB_MAX: Final = 1 << 24
CPU_PERCENT_MAX: Final = 100 * 4_096
_LIMIT: Final = re.compile(
    r"memory\s+(?P<memory_mb>[0-9]{1,8}[GM]B)|cpu\s+(?P<cpu_percent>[0-9]{1,6}%)"
    r"|sentinel\s+(?P<sentinel>\S.*?)\s+(?P<silent_ms>[0-9]{1,8}[a-z]+)"
)
_ITEMS: Final = re.compile(r"[,\s]+")


class LeaderPolicy(StrEnum):
    """The replica that leads once none does; one that leads goes on until it cannot.

    LOWEST: the lowest rank that runs. FIRST: the one that runs longest. RANK: one that is named,
    or nobody. PLUG_IN: the one that a controller of the site's own chooses, or nobody. NONE: all
    of them act, and none leads.
    """

    LOWEST = "lowest"
    FIRST = "first"
    RANK = "rank"
    PLUG_IN = "plug-in"
    NONE = "none"


class GroupVersion(StrEnum):
    """One of a group's two versions: its own command, or that of a trial beside it."""

    OWN = "own"
    TRIAL = "trial"


class Recover(StrEnum):
    """A replica's beginning where nobody supplies a state and its input is not kept whole.

    EMPTY: with the oldest message that is kept. WAIT: not yet. FAIL: it is to end.
    """

    EMPTY = "empty"
    WAIT = "wait"
    FAIL = "fail"


def parse_leader(text: str) -> tuple[LeaderPolicy, int | None]:
    """Read `lowest`, `first`, `plug-in`, `none` or `rank N`.

    >>> parse_leader("rank 2")
    (<LeaderPolicy.RANK: 'rank'>, 2)

    Raises:
        HapteraError: it is none of these.
    """
    word, _, rank = text.strip().partition(" ")
    if word == LeaderPolicy.RANK and rank.strip().isdecimal():
        between(0, REPLICAS_MAX - 1)(int(rank))
        return LeaderPolicy.RANK, int(rank)
    if word in set(LeaderPolicy) - {LeaderPolicy.RANK} and not rank:
        return LeaderPolicy(word), None
    do = "write lowest, first, plug-in, none or rank N"
    raise HapteraError(f"{text!r} is not a way to choose the leader", do=do)


@dataclass(frozen=True, slots=True)
class ReplicaLimits:
    """What a replica may take, and the file that it has to touch; None: as much as there is.

    `cpu_percent` is of one core, over some time; `sentinel` is touched within each `silent_ms`.
    """

    memory_mb: int | None = None
    cpu_percent: int | None = None
    sentinel: str | None = None
    silent_ms: int | None = None


def parse_limits(text: str) -> ReplicaLimits:
    """Read `memory SIZE`, `cpu PERCENT`, `sentinel FILE TIME`, or several of them.

    >>> parse_limits("memory 512MB, cpu 150%, sentinel beat 30s")
    ReplicaLimits(memory_mb=512, cpu_percent=150, sentinel='beat', silent_ms=30000)

    Raises:
        HapteraError: it is none of these, or something is there twice.
    """
    found: dict[str, int | str] = {}
    for item in text.split(","):
        match = _LIMIT.fullmatch(item.strip())
        if match is None:
            do = "write memory 512MB, cpu 150% or sentinel FILE 30s"
            raise HapteraError(f"{item.strip()!r} is not a limit", do=do)
        given = {name: value for name, value in match.groupdict().items() if value is not None}
        if not found.keys().isdisjoint(given):
            raise HapteraError(f"{item.strip()!r} is there twice", do="write it once")
        found |= {
            name: value if name == "sentinel" else _amount(name, value)
            for name, value in given.items()
        }
    return ReplicaLimits(**found)  # type: ignore[arg-type]


def _amount(name: str, text: str) -> int:
    if name == "silent_ms":
        value, least, most = parse_duration_ms(text), SILENT_MS_MIN, SILENT_MS_MAX
    else:
        number, unit = text.rstrip("%GMB"), text.lstrip("0123456789")
        value, least = int(number) * (1_024 if unit == "GB" else 1), 1
        most = MEMORY_MB_MAX if name == "memory_mb" else CPU_PERCENT_MAX
    if not least <= value <= most:
        raise HapteraError(f"{text} is out of range", do=f"write {least} to {most}, as {name}")
    return value


def parse_dimensions(text: str) -> tuple[str, ...]:
    """Read the attributes of nodes by which replicas are kept apart, the weightiest first.

    >>> parse_dimensions("rack, pdu")
    ('rack', 'pdu')

    Raises:
        HapteraError: nodes have no such attribute, or one is there twice.
    """
    names = members_of(text)
    for name in names:
        if node_kind().attribute(name) is None:
            do = nearest(name, [one.name for one in node_kind().attributes])
            raise HapteraError(f"nodes have no attribute {name!r} to keep replicas apart by", do=do)
    if len(set(names)) < len(names):
        raise HapteraError(f"{text!r} names an attribute twice", do="write it once")
    return names


def parse_recover(text: str) -> Recover:
    """Read `empty`, `wait` or `fail`.

    Raises:
        HapteraError: it is none of these.
    """
    if text not in set(Recover):
        raise HapteraError(f"{text!r} is not a way to recover", do="write empty, wait or fail")
    return Recover(text)


def parse_version(text: str) -> GroupVersion:
    """Read `own` or `trial`.

    Raises:
        HapteraError: it is none of these.
    """
    if text not in set(GroupVersion):
        raise HapteraError(f"{text!r} is no version of a group", do="write own or trial")
    return GroupVersion(text)


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """How outputs that are JSON objects are compared: found by `by`, held together `without` some.

    With neither, and for what is no object, an output is compared as it is, with the one at the
    same position.
    """

    by: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def parse_compare(text: str) -> OutputComparison:
    """Read `by MEMBER`, `without MEMBER`, or several of them.

    >>> parse_compare("by order, without at, without took_ms")
    OutputComparison(by=('order',), without=('at', 'took_ms'))

    Raises:
        HapteraError: it is none of these, or a member is there twice.
    """
    found: dict[str, list[str]] = {"by": [], "without": []}
    for item in text.split(","):
        word, _, member = item.strip().partition(" ")
        member = member.strip()
        if word not in found or not member:
            do = "write by MEMBER or without MEMBER, of outputs that are JSON objects"
            raise HapteraError(f"{item.strip()!r} does not say how to compare", do=do)
        if any(member in some for some in found.values()):
            raise HapteraError(f"{text!r} names {member!r} twice", do="write it once")
        found[word].append(member)
    return OutputComparison(tuple(found["by"]), tuple(found["without"]))


def parse_hears(text: str) -> tuple[str, ...]:
    """Read the groups whose outputs a group hears.

    >>> parse_hears("feed, clock")
    ('feed', 'clock')

    Raises:
        HapteraError: one can be no group's name, or is there twice.
    """
    names = members_of(text)
    for name in names:
        check_name(name)
    if len(set(names)) < len(names):
        raise HapteraError(f"{text!r} names a group twice", do="write it once")
    return names


def check_rank(name: str, value: object, count: object) -> None:
    """See that a group of so many replicas has the rank that is to lead by this value.

    Raises:
        HapteraError: it has not, so nobody would.
    """
    rank = parse_leader(value)[1] if name == leader.name and isinstance(value, str) else value
    if name not in (leader.name, lead.name, choice.name) or not isinstance(rank, int):
        return
    if isinstance(count, int) and 0 < count <= rank:
        do = f"write a rank from 0 to {count - 1}, or more replicas"
        raise HapteraError(f"group.{name}: there is no rank {rank} of {count} replicas", do=do)


def check_whole(values: Mapping[str, str | int]) -> None:
    """See that a group has something to run, and the rank that a person would have lead.

    Not the one that a controller has chosen: it hears of fewer replicas after they are written.

    Raises:
        HapteraError: it has not.
    """
    check_command(values)
    if hears.name in values and carrier.name not in values:
        what = "it hears groups, and nothing carries what they say"
        raise HapteraError(what, do="set its carrier: a group that runs a NATS server")
    if trial.name in values and values.get(leader.name) == LeaderPolicy.NONE:
        what = "it has no leader, so what a trial says would leave beside the rest"
        raise HapteraError(what, do="unset its trial, or give it a leader")
    if trial.name not in values and values.get(version.name) == GroupVersion.TRIAL:
        do = "set its trial, or have the group's own lead: version=own"
        raise HapteraError("it has no trial, so none can lead", do=do)
    for name in (leader.name, lead.name):
        check_rank(name, values.get(name), values.get(replicas.name))


def check_command(given: Container[str]) -> None:
    """See that a group with these desired data has something to run.

    Raises:
        HapteraError: it has not.
    """
    if command.name not in given:
        what = "it has no command, so none of its replicas would run"
        raise HapteraError(what, do="set its command as well", code=Code.MISSING)


def numbered(name: str) -> tuple[str, int]:
    """Whose replica or lease this is, and its rank or epoch: `GROUP.NUMBER`.

    >>> numbered("ledger.2")
    ('ledger', 2)
    """
    group, _, number = name.rpartition(".")
    return group, int(number) if number.isdecimal() else 0


def code_key(name: str, rank: int) -> str:
    """The key of a group that gives its replica of this rank what it runs.

    >>> code_key("command", 0), code_key("command", TRIAL_RANK_MIN), code_key("ready", 64)
    ('command', 'trial', 'ready')
    """
    return trial.name if name == command.name and rank >= TRIAL_RANK_MIN else name


def members_of(text: str) -> tuple[str, ...]:
    """The items of a list: a node's attribute names one fault group, or several.

    >>> members_of("a, b"), members_of("")
    (('a', 'b'), ())
    """
    return tuple(filter(None, _ITEMS.split(text)))


command = Plain("group", "command", str, COMMAND_BYTES_MAX, meaning=Meaning.COMMAND)
port = Plain("group", "port", int, size_bytes_max=8, check=between(1, service.PORT_MAX))
ready = Plain("group", "ready", str, 80, service.parse_ready, meaning=Meaning.COMMAND)
# What each replica may take: past that it is stopped.
limits = Plain("group", "limits", str, size_bytes_max=LIMITS_BYTES_MAX, check=parse_limits)
replicas = Plain("group", "replicas", int, size_bytes_max=8, check=between(0, REPLICAS_MAX))
# The nodes that may run one, as a node-set; without it, all.
on = Plain("group", "on", str, size_bytes_max=80, check=parse_nodeset)
# Attributes of nodes: no two replicas share a value of any. The last one is given up first.
apart = Plain("group", "apart", str, size_bytes_max=40, check=parse_dimensions)
# Without it, `lowest`.
leader = Plain("group", "leader", str, size_bytes_max=16, check=parse_leader)
# The groups whose outputs are its input, and the group that carries them: a NATS server each.
hears = Plain("group", "hears", str, size_bytes_max=HEARS_BYTES_MAX, check=parse_hears)
carrier = Plain("group", "carrier", str, size_bytes_max=CARRIER_BYTES_MAX, check=check_name)
# Without it, `empty`.
recover = Plain("group", "recover", str, size_bytes_max=8, check=parse_recover)
# Another version beside the replicas, on the same input: what they would say is compared. `version`
# says which of the two is to lead; until `own_until`, in seconds since 1970, the group's own stay
# beside a trial that leads, and without it for ever.
trial = Plain("group", "trial", str, COMMAND_BYTES_MAX, meaning=Meaning.COMMAND)
trials = Plain("group", "trials", int, size_bytes_max=8, check=between(1, TRIALS_MAX))
compare = Plain("group", "compare", str, COMPARE_BYTES_MAX, parse_compare)
version = Plain("group", "version", str, size_bytes_max=5, check=parse_version)
own_until = Plain("group", "own_until", int, size_bytes_max=8, check=between(0, WALL_S_MAX))
# What ends with a trial.
OF_TRIALS: Final = (trial, trials, compare, version, own_until)
# A rank that a person has lead for now, whatever `leader` says; unset, that counts again.
lead = Plain("group", "lead", int, size_bytes_max=8, check=between(0, REPLICAS_MAX - 1))
# The rank that leads with `leader: plug-in`; written by a controller of the site's own.
choice = Plain("group", "choice", int, size_bytes_max=8, check=between(0, REPLICAS_MAX - 1))
# How many replicas may be down at once by what haptera itself does; without it, one.
down = Plain("group", "down", int, size_bytes_max=8, check=between(0, REPLICAS_MAX))
# How often a rank that does not come to run is tried on another node; without it, never.
moves = Plain("group", "moves", int, size_bytes_max=8, check=between(0, MOVES_MAX))
# The last epoch that was granted, or is about to be: written before anybody is told of it.
epoch = Plain("group", "epoch", int, size_bytes_max=10, check=between(0, 2**63 - 1))

# Where it stands, in words; the controller's.
says = Plain("group", "says", str, size_bytes_max=SAYS_BYTES_MAX)

kind = Kind(
    "group",
    (),
    plain=(
        *(command, port, ready, limits, hears, carrier, recover),
        *(replicas, on, apart, down, moves, *OF_TRIALS),
        *(leader, choice, lead, epoch, says),
    ),
    of_cluster=True,
    on_nodes=True,
    whole=check_whole,
)
