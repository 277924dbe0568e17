"""HTTP/1.1 by h11, from the side of who asks: one request, and its answer as its bytes come.

Importing h11 takes 10 ms, which is felt in a command: import this only where something is asked.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import h11

# Of all that comes before an answer's body; also of a chunk's first line, and of trailers.
HEAD_BYTES_MAX: Final = 65_536


class HttpExchange:
    r"""A request, to be sent as `request`, and its answer, fed with its bytes as they come.

    `status` is None until the answer's head is there; `ended` says that its body is whole.

    >>> exchange = HttpExchange("GET", "/", {"Host": "head"}, None)
    >>> exchange.request
    b'GET / HTTP/1.1\r\nHost: head\r\n\r\n'
    >>> exchange.feed(b"HTTP/1.1 200 OK\r\nContent-Le"), exchange.status
    (b'', None)
    >>> exchange.feed(b"ngth: 5\r\n\r\nhel"), exchange.status, exchange.ended
    (b'hel', 200, False)
    >>> exchange.feed(b"lo"), exchange.ended, exchange.keeps
    (b'lo', True, True)

    Raises:
        ValueError: HTTP does not allow this; what it is is not told, for it may be a token.
    """

    def __init__(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.ended = False
        self._connection = h11.Connection(h11.CLIENT, HEAD_BYTES_MAX)
        self._fed_bytes = 0
        self.request = self._begin(method, target, headers, body or b"")

    @property
    def keeps(self) -> bool:
        """Whether the connection may serve another exchange: nothing is left on it, or to come."""
        connection = self._connection
        return connection.their_state is h11.DONE and connection.trailing_data == (b"", False)

    def feed(self, data: bytes) -> bytes:
        """What of the body these bytes hold; none at all are the connection's end.

        Raises:
            ValueError: this is no HTTP, or its head is too long; EOFError: it ended too early.
        """
        self._fed_bytes += len(data)
        self._connection.receive_data(data)
        try:
            body = self._read()
        except h11.RemoteProtocolError as error:
            if not data:
                raise EOFError("the answer ended too early") from None
            raise ValueError(f"the answer is not valid HTTP: {_words(error)}") from None
        # h11 has a limit for each head, and there may be one after the other that is no answer yet.
        if self.status is None and self._fed_bytes > HEAD_BYTES_MAX:
            raise ValueError(f"the answer is not valid HTTP: {_TOO_LONG}")
        return body

    def _begin(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
        length = {"Content-Length": str(len(body))} if body else {}
        try:
            fields = [
                (name.encode("ascii"), text.encode("latin-1"))
                for name, text in {**headers, **length}.items()
            ]
            events = (
                h11.Request(method=method, target=target, headers=fields),
                h11.Data(body),
                h11.EndOfMessage(),
            )
        except (UnicodeEncodeError, h11.LocalProtocolError):
            raise ValueError(
                "a header has a line break, or another character that HTTP does not allow"
            ) from None
        return b"".join(self._connection.send(event) or b"" for event in events)

    def _read(self) -> bytes:
        """All that can be read now, up to the answer's end: what of it is body."""
        pieces = list[bytes]()
        while not self.ended:
            match self._connection.next_event():
                case h11.Response(status_code=status, headers=headers):
                    self.status = status
                    self.headers = {
                        name.decode("ascii"): text.decode("latin-1") for name, text in headers
                    }
                case h11.Data(data=piece):
                    pieces.append(piece)
                case h11.EndOfMessage():
                    self.ended = True
                case h11.InformationalResponse():
                    pass  # An interim response (100 to 199) is no answer yet.
                case _:
                    break
        return b"".join(pieces)


def _words(error: h11.RemoteProtocolError) -> str:
    """What h11 says is wrong, without the bytes that are: behind a colon it quotes them."""
    if error.error_status_hint == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
        return _TOO_LONG
    return str(error).partition(": b")[0]


_TOO_LONG: Final = f"a head or a line of more than {HEAD_BYTES_MAX} bytes"
