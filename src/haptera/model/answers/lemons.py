"""Nodes that fail more often than others: what went wrong on each, counted over some weeks."""

import msgspec


class Lemon(msgspec.Struct, frozen=True, gc=False):
    """A node, with the number of times that each kind of trouble began on it.

    `excess` adds up how many times the average of all nodes each count is; the average counts as
    one more, so that a single failure among many nodes that have none is no extreme.
    """

    node: str
    lost: int = 0
    failed_jobs: int = 0
    restarts: int = 0
    ill: int = 0
    failed_steps: int = 0
    excess: float = 0.0
