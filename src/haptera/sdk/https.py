"""Connections over HTTPS on which no byte leaves before the other side has been checked."""

import http.client
import ssl
from collections.abc import Callable


class CheckedConnection(http.client.HTTPSConnection):
    """One whose `check` sees each connection before a request is sent on it, and raises.

    `http.client` connects anew by itself, after `Connection: close` for instance, so that a check
    beside `connect` is one of the first connection only.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        context: ssl.SSLContext,
        check: Callable[[ssl.SSLSocket], None],
        within_s: float,
    ) -> None:
        super().__init__(host, port, timeout=within_s, context=context)
        self._check = check

    def connect(self) -> None:
        """Connect and check; what does not pass is closed."""
        super().connect()
        try:
            self._check(self.sock)
        except BaseException:
            self.close()
            raise
