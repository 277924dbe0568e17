"""A process that was asked for and may not be there yet: killed all the same, once it is."""

import contextlib
import os
import signal


class ChildHandle:
    """Holds the pidfd of one child, from when it is forked until it is let go of."""

    def __init__(self) -> None:
        self._pidfd: int | None = None
        self._doomed = False

    def take(self, pidfd: int) -> None:
        """It is forked; it dies at once where it was killed before that."""
        self._pidfd = pidfd
        if self._doomed:
            self.kill()

    def kill(self) -> None:
        self._doomed = True
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
