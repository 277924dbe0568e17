"""One replica as its own program sees it."""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from haptera.app.lease import NotLeaderError, epoch_of, opened, shared

# How often who waits for the lease looks at it.
LOOK_EVERY_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class GroupReplica:
    """This process' replica.

    `placement` counts the nodes that its rank was placed on, `starts` how often it was started on
    this one: a later process of the rank has the higher pair.
    """

    group: str
    rank: int
    node: str
    placement: int
    starts: int
    lease_file: Path
    time_file: Path

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The replica that haptera started this process, or one above it in its session, as.

        Raises:
            KeyError: it did not start it as a replica.
        """
        return cls(
            environment["HAPTERA_GROUP"],
            int(environment["HAPTERA_RANK"]),
            environment["HAPTERA_NODE"],
            int(environment["HAPTERA_PLACEMENT"]),
            int(environment["HAPTERA_STARTS"]),
            Path(environment["HAPTERA_LEASE"]),
            Path(environment["HAPTERA_LEASE_TIME"]),
        )

    def epoch(self) -> int | None:
        """The epoch under which this replica leads now; None: it does not."""
        if not self.lease_file.exists():
            return None
        with opened(self.lease_file) as descriptor:
            return self._epoch(descriptor)

    @contextlib.contextmanager
    def leading(self) -> Iterator[int]:
        """Act as the leader; meanwhile the lease is not taken back, but it may run out.

        Raises:
            NotLeaderError: it does not lead.
        """
        if self.epoch() is None:
            raise self._not_leader
        with opened(self.lease_file) as descriptor, shared(descriptor):
            epoch = self._epoch(descriptor)
            if epoch is None:
                raise self._not_leader
            yield epoch

    def await_lead(self) -> int:
        """Wait until this replica leads, for as long as that takes; returns its epoch."""
        while (epoch := self.epoch()) is None:
            time.sleep(LOOK_EVERY_S)
        return epoch

    @property
    def _not_leader(self) -> NotLeaderError:
        return NotLeaderError(f"rank {self.rank} does not lead {self.group}")

    def _epoch(self, descriptor: int) -> int | None:
        return epoch_of(descriptor, os.getsid(0), self.time_file)
