"""A certificate that a parent issues to itself, renewed while it is shown."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from haptera.runtime.identity.pki import half_life_s

# After at most so long it is seen whether it is to be renewed, and after a failure tried again.
SEEN_TO_EVERY_S: Final = 3600.0

_log = logging.getLogger(__name__)


class OwnCertificate:
    """Key and certificate are in the file `identity`, made anew by `issue` at a wall time.

    Connections that are open keep what they were shown; later ones are shown the new one.
    """

    def __init__(self, issue: Callable[[float], Path], wall_s: Callable[[], float]) -> None:
        self._issue = issue
        self._wall_s = wall_s
        self._contexts: list[ssl.SSLContext] = []
        self.identity = issue(wall_s())

    def shown_by(self, context: ssl.SSLContext) -> ssl.SSLContext:
        """The same, which has loaded this certificate and will load each that follows on it."""
        self._contexts.append(context)
        return context

    async def run(self) -> None:
        """Renew it whenever half of its life is over, until cancelled."""
        while True:
            left_s = half_life_s(self.identity.read_bytes()) - self._wall_s()
            if left_s <= 0:
                left_s = self._renew()
            # Not all at once, for wall clocks are set.
            await asyncio.sleep(min(left_s, SEEN_TO_EVERY_S))

    def _renew(self) -> float:
        """How soon to see to it again."""
        try:
            self.identity = self._issue(self._wall_s())
            for context in self._contexts:
                context.load_cert_chain(self.identity)
        except OSError as error:
            _log.warning("%s is not renewed yet: %s", self.identity, error)
            return SEEN_TO_EVERY_S
        _log.info("%s was renewed", self.identity)
        return 0.0
