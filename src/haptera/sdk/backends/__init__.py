"""The protocol of a backend of jobs, and the values that it exchanges, for its author."""

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
