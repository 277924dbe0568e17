"""What of a node its attributes let jobs have."""

from collections.abc import Mapping

from haptera.kinds import node
from haptera.queue.job import CPUS_MAX, MEMORY_MB_MAX, Size


def capacity_of(attributes: Mapping[str, str]) -> Size | None:
    """The whole of it, for jobs; None where it takes none.

    >>> capacity_of({"cpus": "4", "memory_mb": "8192"})
    Size(cpus=4, memory_mb=8192)
    """
    cpus = _whole(attributes.get(node.cpus.name), CPUS_MAX)
    memory_mb = _whole(attributes.get(node.memory_mb.name), MEMORY_MB_MAX)
    return None if cpus is None or memory_mb is None else Size(cpus, memory_mb)


def _whole(text: str | None, most: int) -> int | None:
    if text is None or not (text.isascii() and text.isdigit()):
        return None
    return min(int(text), most)
