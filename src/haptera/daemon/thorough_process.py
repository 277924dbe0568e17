"""A parent's worker for the planner: it has numpy, which an agent's has not."""

import os
from typing import Any

from haptera.planner.fleet.thorough import thorough
from haptera.runtime.search.search_process import search_process


def thorough_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Be such a worker: a fork target."""
    # Each thread of a library that no search uses would take its share of the worker's memory.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    search_process(arguments, descriptors, thorough)
