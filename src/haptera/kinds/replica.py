"""One replica of a group: its command on a node, kept as a service is, with a role.

It is called GROUP.RANK.
"""

from enum import StrEnum
from typing import Final

from haptera.kinds import group, node, service
from haptera.kinds.service import Run
from haptera.model.declared.desired_check import between
from haptera.model.declared.meaning import Meaning
from haptera.model.declared.schema import Applied, Attribute, Kind, Plain, Serving, Variable

WHY_BYTES_MAX: Final = 160
CARRIERS_BYTES_MAX: Final = 48
# Of a replica that speaks for itself, as no leader does; of one that is compared while silent.
ALONE, TRIAL = "alone", "trial"


class ReplicaRole(StrEnum):
    """A leader holds its group's lease now; who does not is ready to."""

    UNKNOWN = "unknown"
    STANDBY = "standby"
    LEADER = "leader"


run = Variable("replica", "run", Run, service.run.numbers)
applied = Variable("replica", "applied", Applied, service.applied.numbers)
role = Variable(
    "replica",
    "role",
    ReplicaRole,
    {ReplicaRole.UNKNOWN: 0, ReplicaRole.STANDBY: 1, ReplicaRole.LEADER: 2},
)

command = Plain("replica", "command", str, group.COMMAND_BYTES_MAX, meaning=Meaning.COMMAND)
port = Plain("replica", "port", int, size_bytes_max=8, check=service.port.check)
ready = Plain("replica", "ready", str, 80, service.parse_ready, meaning=Meaning.COMMAND)
limits = Plain("replica", "limits", str, group.LIMITS_BYTES_MAX, group.parse_limits)
# What its group hears, from which servers, how it recovers; whether it speaks for itself.
hears = Plain("replica", "hears", str, group.HEARS_BYTES_MAX, group.parse_hears)
carriers = Plain("replica", "carriers", str, size_bytes_max=CARRIERS_BYTES_MAX)
recover = Plain("replica", "recover", str, size_bytes_max=8, check=group.parse_recover)
voice = Plain("replica", "voice", str, size_bytes_max=5)
# Counts where its rank was placed: the first place is 1.
placement = Plain("replica", "placement", int, size_bytes_max=8, check=between(1, 2**31))

# Why it is on this node, in words.
why = Attribute("replica", "placed", size_bytes_max=WHY_BYTES_MAX)

kind = Kind(
    "replica",
    (run, applied, role),
    (why,),
    (command, port, ready, limits, hears, carriers, recover, voice, placement),
    borrows=(node.agent,),
    leaves=((run, Run.STOPPED),),
    serves=Serving(run, Run.RUNNING, lambda name: name.rpartition(".")[0]),
)
