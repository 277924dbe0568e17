"""A group of replicas: one command, run so many times apart from each other, led by one of them."""

import re
from enum import StrEnum
from typing import Final

from haptera.kinds import service
from haptera.kinds.extensions import node_kind
from haptera.model.desired_check import between, nearest
from haptera.model.errors import HapteraError
from haptera.model.schema import Kind, Plain
from haptera.selectors.nodeset import parse_nodeset

REPLICAS_MAX: Final = 64
SAYS_BYTES_MAX: Final = 112
# A service has more: of a replica more else is told, in one datagram.
COMMAND_BYTES_MAX: Final = 400
_ITEMS: Final = re.compile(r"[,\s]+")


class LeaderPolicy(StrEnum):
    """Which replica leads once nobody does; whoever leads goes on until it cannot.

    LOWEST: the lowest rank that runs. FIRST: the one that runs longest. RANK: one that is named,
    or nobody. NONE: all of them act, and none leads.
    """

    LOWEST = "lowest"
    FIRST = "first"
    RANK = "rank"
    NONE = "none"


def parse_leader(text: str) -> tuple[LeaderPolicy, int | None]:
    """Read `lowest`, `first`, `none` or `rank N`.

    >>> parse_leader("rank 2")
    (<LeaderPolicy.RANK: 'rank'>, 2)

    Raises:
        HapteraError: it is none of these.
    """
    word, _, rank = text.strip().partition(" ")
    if word == LeaderPolicy.RANK and rank.strip().isdecimal():
        between(0, REPLICAS_MAX - 1)(int(rank))
        return LeaderPolicy.RANK, int(rank)
    if word in (LeaderPolicy.LOWEST, LeaderPolicy.FIRST, LeaderPolicy.NONE) and not rank:
        return LeaderPolicy(word), None
    do = "write lowest, first, none or rank N"
    raise HapteraError(f"{text!r} is no way to choose who leads", do=do)


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


def numbered(name: str) -> tuple[str, int]:
    """Whose replica or lease this is, and its rank or epoch: `GROUP.NUMBER`.

    >>> numbered("ledger.2")
    ('ledger', 2)
    """
    group, _, number = name.rpartition(".")
    return group, int(number) if number.isdecimal() else 0


def members_of(text: str) -> tuple[str, ...]:
    """The items of a list: a node's attribute names one fault group, or several.

    >>> members_of("a, b"), members_of("")
    (('a', 'b'), ())
    """
    return tuple(filter(None, _ITEMS.split(text)))


command = Plain("group", "command", str, size_bytes_max=COMMAND_BYTES_MAX)
port = Plain("group", "port", int, size_bytes_max=8, check=between(1, service.PORT_MAX))
ready = Plain("group", "ready", str, size_bytes_max=96, check=service.parse_ready)
replicas = Plain("group", "replicas", int, size_bytes_max=8, check=between(0, REPLICAS_MAX))
# The nodes that may run one, as a node-set; without it, all.
on = Plain("group", "on", str, size_bytes_max=96, check=parse_nodeset)
# Attributes of nodes: no two replicas share a value of any. The last one is given up first.
apart = Plain("group", "apart", str, size_bytes_max=48, check=parse_dimensions)
# Without it, `lowest`.
leader = Plain("group", "leader", str, size_bytes_max=16, check=parse_leader)
# A rank that a person has lead for now, whatever `leader` says; unset, that counts again.
lead = Plain("group", "lead", int, size_bytes_max=8, check=between(0, REPLICAS_MAX - 1))
# The last epoch that was granted, or is about to be: written before anybody is told of it.
epoch = Plain("group", "epoch", int, size_bytes_max=10, check=between(0, 2**63 - 1))

# Where it stands, in words; the controller's.
says = Plain("group", "says", str, size_bytes_max=SAYS_BYTES_MAX)

kind = Kind(
    "group",
    (),
    plain=(command, port, ready, replicas, on, apart, leader, lead, epoch, says),
    of_cluster=True,
)
