"""What the author of a backend imports: the protocol, and the values that it exchanges."""

from haptera.queue.job import Size
from haptera.sdk.backends.protocol import (
    BackendTerms,
    EngineJob,
    JobBackend,
    JobName,
    JobOrder,
    JobRefusedError,
    JobReturnedError,
    JobStage,
    Partition,
)

__all__ = [
    "BackendTerms",
    "EngineJob",
    "JobBackend",
    "JobName",
    "JobOrder",
    "JobRefusedError",
    "JobReturnedError",
    "JobStage",
    "Partition",
    "Size",
]
