"""A command that should run on a node, for as long as it is desired."""

from enum import StrEnum
from typing import Final

from haptera.kinds import node
from haptera.model.desired_check import between
from haptera.model.schema import Applied, Kind, Plain, Variable

PORT_MAX: Final = 65_535


class Run(StrEnum):
    UNKNOWN = "unknown"
    STOPPED = "stopped"
    RUNNING = "running"
    FAILED = "failed"


run = Variable(
    "service", "run", Run, {Run.UNKNOWN: 0, Run.STOPPED: 1, Run.RUNNING: 2, Run.FAILED: 3}
)
applied = Variable(
    "service",
    "applied",
    Applied,
    {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2},
)

command = Plain("service", "command", str, size_bytes_max=512)
port = Plain("service", "port", int, size_bytes_max=8, check=between(1, PORT_MAX))

kind = Kind(
    "service",
    (run, applied),
    plain=(command, port),
    borrows=(node.agent,),
    leaves=((run, Run.STOPPED),),
)
