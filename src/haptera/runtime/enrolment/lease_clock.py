"""The time of a node's leases: moved on for as long as its parent shows to hear the node."""

import logging
from pathlib import Path

from haptera.app.lease import LEASE_TIME, LeaseTime, read_time, write_time
from haptera.runtime.clock import now_ns

_log = logging.getLogger(__name__)


class LeaseClock:
    """Keeps the file that holders of leases look at; their leases outlive this process."""

    def __init__(self, directory: Path, length_ns: int) -> None:
        self._file = directory / LEASE_TIME
        self._length_ns = length_ns
        self._told = read_time(self._file)

    def confirmed(self, sent_at: int) -> None:
        """The parent has heard what was sent at this time, in ns; it counts from then."""
        until, now = sent_at + self._length_ns, now_ns()
        if until <= self._told.until:
            return
        # Once it has run out, others may have been granted what this node held.
        since = self._told.since if now <= self._told.until else now
        self._told = LeaseTime(until, since)
        try:
            write_time(self._file, self._told)
        except OSError as error:
            # What led to this goes on: the parent was heard. Leases end where nobody renews them.
            _log.warning("%s: leases of this node will end: %s", self._file, error.strerror)
