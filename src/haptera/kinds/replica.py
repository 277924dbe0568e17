"""One replica of a group: its command on a node, kept as a service is, with a role.

It is called GROUP.RANK.
"""

import re
from enum import StrEnum
from typing import Final, NamedTuple, Self

from haptera.kinds import group, node, service
from haptera.kinds.service import Run
from haptera.model.declared.desired_check import between
from haptera.model.declared.meaning import Meaning
from haptera.model.declared.schema import Applied, Attribute, Kind, Plain, Serving, Variable

WHY_BYTES_MAX: Final = 110
CARRIERS_BYTES_MAX: Final = 48
# Of a replica that speaks for itself, as no leader does; of one that is compared while silent.
ALONE, TRIAL = "alone", "trial"


class ReplicaRole(StrEnum):
    """A leader holds its group's lease now; who does not is ready to."""

    UNKNOWN = "unknown"
    STANDBY = "standby"
    LEADER = "leader"


class TrialCounts(NamedTuple):
    """How many outputs of a replica on trial are those of its leader, as its role is noted.

    >>> str(TrialCounts(1, 1, "2.1"))
    'trial: 1 of 2 outputs differ, the first at 2.1'
    >>> TrialCounts.of(str(TrialCounts(7)))
    TrialCounts(equal=7, different=0, first=None)
    """

    equal: int = 0
    different: int = 0
    # After which message of the input, and which one since.
    first: str | None = None

    @classmethod
    def of(cls, note: str | None) -> Self | None:
        """The counts of a note; None: it has none."""
        found = _COUNTS.fullmatch(note or "")
        if found is None:
            return None
        if found["first"] is None:
            return cls(int(found["equal"]))
        different = int(found["different"])
        return cls(int(found["all"]) - different, different, found["first"])

    def __str__(self) -> str:
        if self.first is None:
            return f"trial: {self.equal} outputs are equal to the leader's"
        both = self.equal + self.different
        return f"trial: {self.different} of {both} outputs differ, the first at {self.first}"


_COUNTS: Final = re.compile(
    r"trial: (?:(?P<equal>\d{1,18}) outputs are equal to the leader's"
    r"|(?P<different>\d{1,18}) of (?P<all>\d{1,18}) outputs differ, the first at "
    r"(?P<first>\d{1,18}\.\d{1,18}))",
    re.ASCII,
)

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
# How what it says is compared, where it is on trial.
compare = Plain("replica", "compare", str, group.COMPARE_BYTES_MAX, group.parse_compare)
# Counts where its rank was placed: the first place is 1.
placement = Plain("replica", "placement", int, size_bytes_max=8, check=between(1, 2**31))

# Why it is on this node, in words.
why = Attribute("replica", "placed", size_bytes_max=WHY_BYTES_MAX)

kind = Kind(
    "replica",
    (run, applied, role),
    (why,),
    (command, port, ready, limits, hears, carriers, recover, voice, compare, placement),
    borrows=(node.agent,),
    leaves=((run, Run.STOPPED),),
    serves=Serving(run, Run.RUNNING, lambda name: name.rpartition(".")[0]),
)
