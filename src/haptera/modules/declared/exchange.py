"""One request over HTTP and its answer, within bounds of time and bytes, at one origin only."""

import http.client
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final
from urllib.parse import urljoin, urlsplit

from haptera.modules.declared.texts import words
from haptera.sdk import HapteraError

PIECE_BYTES: Final = 64 << 10
ANSWER_BYTES_MAX: Final = 1 << 20
# A page of a list: of ten thousand entities, 3 kB each.
LIST_BYTES_MAX: Final = 32 << 20
CONNECTED_S_MAX: Final = 10.0
SILENT_S_MAX: Final = 60.0
_PORTS: Final = {"http": 80, "https": 443}


class PlatformError(Exception):
    """There is no answer, or one that cannot be used: what a step has done is not known."""


@dataclass(frozen=True, slots=True)
class ApiOrigin:
    """The URL of an API, and the certificates by which both sides are known."""

    url: str
    ca_file: str | None = None
    certificate_file: str | None = None

    def check(self) -> None:
        """See that the URL can be one of an API.

        Raises:
            HapteraError: it is none, or has a password in it.
        """
        do = "write http://HOST:PORT or https://HOST/PATH"
        parts, known = urlsplit(""), False
        with suppress(ValueError):
            parts = urlsplit(self.url)
            known = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
        if not known or not self.url.isascii() or not self.url.isprintable() or " " in self.url:
            raise HapteraError("the url is none of an API", do=do)
        if "@" in parts.netloc:
            raise HapteraError("the url has a password in it", do="use `settings: {token: …}`")
        if parts.query or parts.fragment:
            raise HapteraError("the url has a query", do="write it in each path")

    @property
    def is_private(self) -> bool:
        """True if nobody else can read the traffic: TLS, or an address of this machine."""
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        return parts.scheme == "https" or host == "localhost" or _is_loopback(host)

    @property
    def base(self) -> str:
        """The path that all others are below."""
        return urlsplit(self.url).path.rstrip("/")

    def inside(self, reference: str, beside: str) -> str:
        """The path that a reference names in what was read at the path `beside`.

        Raises:
            PlatformError: it is elsewhere, where our token is not sent.
        """
        ours, there, same = urlsplit(self.url), urlsplit(""), False
        with suppress(ValueError):
            there = urlsplit(urljoin(f"{ours.scheme}://{ours.netloc}{beside}", reference))
            same = (there.scheme, there.hostname, there.port or _PORTS.get(there.scheme)) == (
                *(ours.scheme, ours.hostname),
                ours.port or _PORTS[ours.scheme],
            )
        if not same or not reference.isascii() or not reference.isprintable() or " " in reference:
            raise PlatformError(f"it names {words(reference)}, which is not below its own address")
        return f"{there.path or '/'}{'?' if there.query else ''}{there.query}"


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request; `path` is the whole of it, with its query."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = None
    bytes_max: int = ANSWER_BYTES_MAX


@dataclass(frozen=True, slots=True)
class PlatformAnswer:
    """An answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ApiExchange:
    """One request, on a connection of its own; `hang_up` ends it from another thread."""

    def __init__(self, origin: ApiOrigin) -> None:
        parts = urlsplit(origin.url)
        assert parts.hostname is not None
        if parts.scheme == "https":
            self._http: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=CONNECTED_S_MAX, context=_context(origin)
            )
        else:
            self._http = http.client.HTTPConnection(
                parts.hostname, parts.port, timeout=CONNECTED_S_MAX
            )
        # `http.client` lets go of it where the other side is to hang up, and reads on.
        self._connected: socket.socket | None = None
        self._ended = False

    def ask(self, request: ApiRequest) -> PlatformAnswer:
        """The answer, whatever its status; where it redirects, nobody follows.

        Raises:
            PlatformError: there is none.
        """
        try:
            self._http.connect()
            self._connected = self._http.sock
            self._connected.settimeout(SILENT_S_MAX)
            if self._ended:
                # Nobody waits any more: what is asked for may be unwanted by now.
                raise PlatformError("it was connected to too late")
            self._http.request(request.method, request.path, request.body, dict(request.headers))
            with self._http.getresponse() as answer:
                body = self._body(answer, request.bytes_max)
        except ssl.SSLCertVerificationError as error:
            raise PlatformError(f"it is not trusted: {words(error.verify_message)}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            # No word of the error itself where it may have one of what was sent.
            name = type(error).__name__
            detail = "" if isinstance(error, ValueError) else f": {words(str(error))}"
            raise PlatformError(f"it does not answer ({name}{detail})") from None
        finally:
            self._http.close()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        coding = headers.get("content-encoding", "identity")
        if coding.lower() != "identity":
            raise PlatformError(f"it answers in a coding that was not asked: {words(coding)}")
        return PlatformAnswer(answer.status, headers, body)

    def hang_up(self) -> None:
        """End what is under way: also what drips, one byte within each time limit."""
        self._ended = True
        if self._connected is not None:
            with suppress(OSError):
                # Not its own method, which lets go of TLS first.
                socket.socket.shutdown(self._connected, socket.SHUT_RDWR)

    def _body(self, answer: http.client.HTTPResponse, bytes_max: int) -> bytes:
        found = bytearray()
        while not self._ended and (piece := answer.read1(PIECE_BYTES)):
            found += piece
            if len(found) > bytes_max:
                raise PlatformError(f"it answers more than {bytes_max} bytes")
        if self._ended or answer.length:
            raise PlatformError("its answer is cut short")
        return bytes(found)


def _is_loopback(host: str) -> bool:
    """True for addresses alone: a name that begins like one may be anybody's."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _context(origin: ApiOrigin) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=origin.ca_file)
        if origin.certificate_file is not None:
            context.load_cert_chain(origin.certificate_file)
    except OSError as error:
        files = " or ".join(filter(None, [origin.ca_file, origin.certificate_file]))
        do = "name files of PEM that the module's user can read; the certificate with its key"
        raise HapteraError(f"{files}: {error.strerror or type(error).__name__}", do=do) from None
    return context
