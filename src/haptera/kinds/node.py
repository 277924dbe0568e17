"""A machine, real or virtual: its power, its agent, and what it is busy with."""

from enum import StrEnum
from typing import Final

from haptera.model.declared.desired_check import between
from haptera.model.declared.schema import Applied, Attribute, Kind, Plain, Variable
from haptera.model.entity import check_name
from haptera.model.walltime import WALL_S_MAX


class Power(StrEnum):
    UNKNOWN = "unknown"
    OFF = "off"
    ON = "on"
    HUNG = "hung"


class Agent(StrEnum):
    """Nothing else than `up` can be known of an agent: silence tells nothing."""

    UNKNOWN = "unknown"
    UP = "up"


class Busy(StrEnum):
    UNKNOWN = "unknown"
    FREE = "free"
    BUSY = "busy"


class NodeWork(StrEnum):
    """Whether new jobs are given to a node: they are where nothing is desired, too.

    What runs on one that is `draining` may end, until `work_until`; once all has, it is `drained`.
    One that is `held` is left alone by pools as well; on one that has `failed` everything is
    stopped now.
    """

    UNKNOWN = "unknown"
    OPEN = "open"
    DRAINING = "draining"
    DRAINED = "drained"
    HELD = "held"
    FAILED = "failed"


class Netboot(StrEnum):
    """Whether its parent's boot servers answer this machine now."""

    UNKNOWN = "unknown"
    CLOSED = "closed"
    OFFERED = "offered"


class PowerProfile(StrEnum):
    """How much speed a node's processors give up for less power; `other` is a mixture, or none.

    Each is an order of the node's to itself: what the kernel limits for heat stays limited.
    """

    UNKNOWN = "unknown"
    PERFORMANCE = "performance"
    BALANCED = "balanced"
    POWERSAVE = "powersave"
    OTHER = "other"


power = Variable(
    "node", "power", Power, {Power.UNKNOWN: 0, Power.OFF: 1, Power.ON: 2, Power.HUNG: 3}
)
agent = Variable("node", "agent", Agent, {Agent.UNKNOWN: 0, Agent.UP: 1})
busy = Variable("node", "busy", Busy, {Busy.UNKNOWN: 0, Busy.FREE: 1, Busy.BUSY: 2})
netboot = Variable(
    "node", "netboot", Netboot, {Netboot.UNKNOWN: 0, Netboot.CLOSED: 1, Netboot.OFFERED: 2}
)
# Whether the minOS that it runs is the one that is desired.
booted = Variable(
    "node", "booted", Applied, {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2}
)
# Whether what it is to boot lies at its parent.
bootable = Variable(
    "node", "bootable", Applied, {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2}
)
# It is changed while jobs run: they go slower, and on.
power_profile = Variable(
    "node",
    "power_profile",
    PowerProfile,
    {
        PowerProfile.UNKNOWN: 0,
        PowerProfile.PERFORMANCE: 1,
        PowerProfile.BALANCED: 2,
        PowerProfile.POWERSAVE: 3,
        PowerProfile.OTHER: 4,
    },
)

# The name of a minOS, a subfolder of the parent's; another kernel is another minOS.
minos = Plain("node", "minos", str, check=check_name)

# Whether it takes jobs: of the queue, or of another batch system whose module serves this.
work = Variable(
    "node",
    "work",
    NodeWork,
    {
        NodeWork.UNKNOWN: 0,
        NodeWork.OPEN: 1,
        NodeWork.DRAINING: 2,
        NodeWork.DRAINED: 3,
        NodeWork.HELD: 4,
        NodeWork.FAILED: 5,
    },
    reads_as={NodeWork.DRAINING: NodeWork.DRAINED},
    heeded=True,
)
# By whom it is read of a node whose jobs the queue gives.
QUEUE: Final = "queue"
# Noted by the module of a batch system where jobs are kept from a node only as desired here: once
# nothing is desired any more, the node is opened.
AS_DESIRED: Final = "as desired"
# Why it takes none, and until when what runs may run, in seconds since 1970.
WHY_BYTES_MAX: Final = 200
work_why = Plain("node", "work_why", str, WHY_BYTES_MAX, compared_by=())
work_until = Plain("node", "work_until", int, 8, between(0, WALL_S_MAX), compared_by=())
# Why it has another power profile than before: the cap, and what was drawn.
POWER_WHY_BYTES_MAX: Final = 96
power_why = Plain("node", "power_why", str, POWER_WHY_BYTES_MAX, compared_by=())

platform = Attribute("node", "platform")
rack = Attribute("node", "rack")
# What else a node fails with: the names of one or several, `p1, p2`.
pdu = Attribute("node", "pdu", size_bytes_max=48)
switch = Attribute("node", "switch", size_bytes_max=48)
address = Attribute("node", "address")
bmc = Attribute("node", "bmc", size_bytes_max=128)
# What its BMC does otherwise than others: `uefi-boot, no-shutdown`.
bmc_quirks = Attribute("node", "bmc_quirks", size_bytes_max=64)
# How its BMC is asked over IPMI, where not as the module's settings say.
bmc_cipher_suite = Attribute("node", "bmc_cipher_suite", size_bytes_max=2)
bmc_interface = Attribute("node", "bmc_interface", size_bytes_max=16)
bmc_privilege = Attribute("node", "bmc_privilege", size_bytes_max=16)
# The network card that it boots by, `52:54:00:12:34:56`.
mac = Attribute("node", "mac", size_bytes_max=17)
# `network`: it is started only once its parent offers it what to boot.
boot_from = Attribute("node", "boot_from", size_bytes_max=16)
NETWORK: Final = "network"
# `arm64`, or else `x86-64`: which loader and which kernel it boots from the network.
architecture = Attribute("node", "architecture", size_bytes_max=16)
# The parents that it may have, the first one first: `m1, m2`. Without a list, the root.
parents = Attribute("node", "parents", size_bytes_max=48)
# The groups that it is in, `gpu, login`: @gpu in a selector.
groups = Attribute("node", "groups", size_bytes_max=256)
# Nodes that fail together: what disturbs one of them spares the others. Without it, the rack.
fault_group = Attribute("node", "fault_group")
# `recover`: once its agent is down for good, the node may be disturbed without its permit.
if_lost = Attribute("node", "if_lost", size_bytes_max=16)

# `none` says that nothing on this node is ever busy, so that it needs no gate.
jobs = Attribute("node", "jobs", size_bytes_max=16)
JOBS_NONE: Final = "none"
# `never`: no agent is ever asked whether the node may be disturbed, only gates at the parent.
has_agent = Attribute("node", "has_agent", size_bytes_max=16)
HAS_AGENT_NEVER: Final = "never"

# What of it jobs of the queue may have, whole CPUs and MB; without both it takes none.
cpus = Attribute("node", "cpus", size_bytes_max=6)
memory_mb = Attribute("node", "memory_mb", size_bytes_max=10)

kind = Kind(
    "node",
    (power, agent, busy, netboot, booted, bootable, work, power_profile),
    (
        platform,
        rack,
        pdu,
        switch,
        address,
        bmc,
        bmc_quirks,
        bmc_cipher_suite,
        bmc_interface,
        bmc_privilege,
        mac,
        boot_from,
        architecture,
        jobs,
        has_agent,
        fault_group,
        if_lost,
        groups,
        parents,
        cpus,
        memory_mb,
    ),
    plain=(minos, work_why, work_until, power_why),
    in_force=(booted, bootable),
    former={"slurm.use": "write `work`, which Slurm heeds as the queue does: draining, or open"},
)


_MAC_BYTES: Final = 6


def parse_mac(text: str) -> bytes | None:
    """The six bytes of a MAC address, however people write it; None where it is none.

    >>> parse_mac("52-54-00-AB-CD-EF").hex(":"), parse_mac("52:54")
    ('52:54:00:ab:cd:ef', None)
    """
    try:
        found = bytes.fromhex(text.replace(":", "").replace("-", ""))
    except ValueError:
        return None
    return found if len(found) == _MAC_BYTES else None
