"""HTTP/1.1 as bytes, from the side of who asks: a request, and the answer as its pieces come.

The standard library's client reads from a socket of its own, which no event loop can wait for,
and importing it takes as long as a whole command does otherwise.
"""

from collections.abc import Generator, Mapping
from typing import Final

HEAD_BYTES_MAX: Final = 65_536
_END: Final = b"\r\n"
_NO_BODY: Final = (204, 304)
_DIGITS_MAX: Final = 16

# Waits for more bytes where it yields.
_Reading = Generator[None, None, None]
_Line = Generator[None, None, str]


def request(method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """A request, whole.

    Raises:
        ValueError: a header has a line break or what is not Latin-1; what follows would be another.
    """
    fields = dict(headers)
    if body is not None:
        fields["Content-Length"] = str(len(body))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {text}" for name, text in fields.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a line of the request has a line break")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


class Answer:
    r"""An answer to a request, fed with its bytes as they come.

    `status` is None until its head is there; `ended` says that its body is whole, `keeps` that
    the connection may be used again then.

    >>> answer = Answer()
    >>> answer.feed(b"HTTP/1.1 200 OK\r\nContent-Le"), answer.status
    (b'', None)
    >>> answer.feed(b"ngth: 5\r\n\r\nhel"), answer.status, answer.ended
    (b'hel', 200, False)
    >>> answer.feed(b"lo"), answer.ended
    (b'lo', True)
    """

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.ended = False
        self.keeps = False
        self._held = bytearray()
        self._body = bytearray()
        self._head_left = HEAD_BYTES_MAX
        self._reading = self._read()
        next(self._reading)

    def feed(self, data: bytes) -> bytes:
        """What of the body these bytes hold; none at all are the connection's end.

        Raises:
            ValueError: this is no HTTP; EOFError: it ended too early.
        """
        self._held += data
        try:
            if data:
                self._reading.send(None)
            else:
                self._reading.throw(EOFError("the answer ended too early"))
        except StopIteration:
            self.ended = True
        body = bytes(self._body)
        self._body.clear()
        return body

    def _read(self) -> _Reading:
        first = yield from self._line()
        # What is told meanwhile (100 to 199) is no answer yet.
        while (status := _status(first)) < 200:
            yield from self._headers()
            first = yield from self._line()
        headers = yield from self._headers()
        self.headers, self.status = headers, status
        self.keeps = first.startswith("HTTP/1.1") and headers.get("connection", "") != "close"
        if status in _NO_BODY:
            return
        if headers.get("transfer-encoding", "").lower() == "chunked":
            yield from self._chunks()
        elif "content-length" in headers:
            yield from self._take(_number(headers["content-length"], 10))
        else:
            self.keeps = False
            yield from self._rest()

    def _headers(self) -> Generator[None, None, dict[str, str]]:
        headers = {}
        while line := (yield from self._line()):
            name, colon, text = line.partition(":")
            if not colon:
                raise ValueError(f"{line[:64]!r} is no header")
            headers[name.strip().lower()] = text.strip()
        return headers

    def _chunks(self) -> _Reading:
        while size := _number((yield from self._line()).partition(";")[0].strip(), 16):
            yield from self._take(size)
            if (yield from self._line()):
                raise ValueError("a chunk is longer than it said")
        yield from self._headers()  # trailers: of no interest

    def _rest(self) -> _Reading:
        """All until the connection ends."""
        try:
            while True:
                self._body += self._held
                self._held.clear()
                yield
        except EOFError:
            return

    def _take(self, size: int) -> _Reading:
        while True:
            piece = self._held[:size]
            self._body += piece
            del self._held[:size]
            size -= len(piece)
            if not size:
                return
            yield

    def _line(self) -> _Line:
        """The next line; those of the head, chunk sizes and trailers have a limit together."""
        looked = 0
        while (end := self._held.find(_END, looked)) < 0:
            if len(self._held) > self._head_left:
                break
            looked = max(0, len(self._held) - 1)
            yield
        if not 0 <= end <= self._head_left:
            raise ValueError("the head of the answer is too long")
        line = self._held[:end].decode("latin-1")
        del self._held[: end + len(_END)]
        if self.status is None:
            self._head_left -= len(line)
        return line


def _status(line: str) -> int:
    """The status of an answer's first line."""
    version, _, rest = line.partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or rest[3:4].strip():
        raise ValueError(f"{line[:64]!r} begins no answer")
    return _number(status, 10, least=100)


def _number(text: str, base: int, *, least: int = 0) -> int:
    """A number in ASCII digits only: int() would take signs, spaces and underscores too."""
    if not (text.isascii() and text.isalnum() and len(text) <= _DIGITS_MAX):
        raise ValueError(f"{text[:64]!r} is no number")
    number = int(text, base)
    if number < least:
        raise ValueError(f"{text} is too small")
    return number
