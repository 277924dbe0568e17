"""A root file system that nodes run: built by the parent from a recipe, and kept by its digest."""

from enum import StrEnum
from typing import Final

from haptera.model.declared.meaning import Meaning
from haptera.model.declared.schema import Applied, Kind, Plain, Variable

# Where there are images of the OCI or of Docker, in the words of containers-transports(5).
REMOTE: Final = "docker"
LOCAL: Final = ("oci", "oci-archive", "docker-archive")

# How a reference begins that is a digest, and no name.
DIGEST: Final = "sha256:"


class State(StrEnum):
    UNKNOWN = "unknown"
    ABSENT = "absent"
    BUILT = "built"


state = Variable("image", "state", State, {State.UNKNOWN: 0, State.ABSENT: 1, State.BUILT: 2})
applied = Variable(
    "image",
    "applied",
    Applied,
    {Applied.UNKNOWN: 0, Applied.STALE: 1, Applied.CURRENT: 2},
)

# A folder with a Dockerfile, on the parent's machine.
recipe = Plain("image", "recipe", str, 256, meaning=Meaning.CODE_FILE)
# Or what it is imported from: docker://, oci:, docker-archive:, or a path on the parent's machine.
source = Plain("image", "source", str, 256, meaning=Meaning.CODE_FILE)

kind = Kind(
    "image",
    (state, applied),
    plain=(recipe, source),
    of_cluster=True,
)
