"""What a node's users see: an image that runs on the node, and is replaced as a whole."""

from enum import StrEnum

from haptera.kinds import node
from haptera.model.schema import Applied, Kind, Plain, Variable


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
# Whether the desired one lies on the node, verified and mounted, ready to be started.
staged = Variable(
    "system",
    "staged",
    Applied,
    {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2},
)

# The name of an image, or its digest, `sha256:…`.
image = Plain("system", "image", str, size_bytes_max=80)

kind = Kind(
    "system",
    (run, applied, staged),
    plain=(image,),
    borrows=(node.agent,),
    leaves=((run, SystemRun.STOPPED),),
)
