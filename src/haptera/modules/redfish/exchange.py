"""Requests to one Redfish service and their answers: HTTPS, redirects, content codings, limits.

`http.client` is the standard library's; it blocks, so that all of this runs in a thread.
"""

import hashlib
import http.client
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from email.message import Message
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

from haptera.kinds.host_port import HostPort
from haptera.modules.effects import DeviceError
from haptera.modules.redfish.documents import Document, document_of, path_of
from haptera.sdk import HapteraError
from haptera.sdk.https import CheckedConnection

HTTPS_PORT: Final = 443
# Old BMCs take seconds for a handshake, and for an answer; all that one call asks is asked in less.
ANSWER_S_MAX: Final = 8.0
CALL_S_MAX: Final = 25.0
ANSWER_BYTES_MAX: Final = 1 << 20
PIECE_BYTES: Final = 64 << 10
REDIRECTS_MAX: Final = 4
RETRY_AFTER_S_MAX: Final = 300.0
WORDS_MAX: Final = 300
# A window of any size, with the head of gzip or that of zlib.
_ANY_HEAD: Final = 47
_BARE: Final = -15
_HUNG_UP: Final = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_HEADERS: Final = {"Accept": "application/json", "OData-Version": "4.0", "User-Agent": "haptera"}


class RedfishError(DeviceError):
    """The BMC does not answer, or its answer cannot be understood.

    `status` is what it answered, if it did; `after_s` is when it asks to be asked again.
    """

    def __init__(
        self, words: str, *, status: int | None = None, after_s: float | None = None
    ) -> None:
        super().__init__(words)
        self.status = status
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Where a service is; `path` is that of one system of it, or empty."""

    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, text: str) -> "ServiceAddress":
        """Of `ADDRESS`, `ADDRESS:PORT`, or either with the path of a system.

        >>> ServiceAddress.parse("10.0.1.7:8443/redfish/v1/Systems/1")
        ServiceAddress(host='10.0.1.7', port=8443, path='/redfish/v1/Systems/1')
        >>> ServiceAddress.parse("[fd00::7]")
        ServiceAddress(host='fd00::7', port=443, path='')

        Raises:
            HapteraError: it is none of these.
        """
        place, slash, path = text.removeprefix("https://").partition("/")
        try:
            at = HostPort.parse(place, HTTPS_PORT)
        except HapteraError as error:
            do = f"{error.do}, or either with /redfish/v1/Systems/ID behind it"
            what = f"{text!r} is not the address of a Redfish service"
            raise HapteraError(what, do=do) from None
        return cls(at.host, at.port, slash + path)

    def __str__(self) -> str:
        return f"{HostPort(self.host, self.port)}{self.path}"

    @property
    def service(self) -> "ServiceAddress":
        """The service, whichever of its systems this names."""
        return replace(self, path="")


@dataclass(frozen=True, slots=True)
class Trust:
    """Which certificate a service may have.

    Without a `pin`, what `ca_file`, or the system's own list, vouches for is trusted. `pin` is the
    file of the fingerprint of the one certificate that is; the first one seen is written there.
    """

    ca_file: Path | None = None
    pin: Path | None = None


@dataclass(frozen=True, slots=True)
class RedfishAnswer:
    """What a service answered, in plain bytes, and the path that answered so."""

    status: int
    headers: Message
    content: bytes
    path: str

    @property
    def document(self) -> Document:
        return document_of(self.content)

    @property
    def location(self) -> str | None:
        """The path that it names in its head."""
        return self._path(self.headers["Location"])

    def link(self, *path: str) -> str | None:
        """The path of the resource that it refers to."""
        return self._path(self.document.link(*path))

    def links(self, *path: str) -> Sequence[str]:
        return [path_of(one, self.path) for one in self.document.links(*path)]

    @property
    def after_s(self) -> float | None:
        """When it asks to be asked again; never at once, and never in hours."""
        said = (self.headers["Retry-After"] or "").strip()
        if said.isascii() and said.isdigit():
            after_s = float(said)
        else:
            try:
                then, now = (parsedate_to_datetime(one) for one in (said, self.headers["Date"]))
                after_s = (then - now).total_seconds()
            except (ValueError, TypeError):
                return None
        return min(max(1.0, after_s), RETRY_AFTER_S_MAX)

    @property
    def said(self) -> str:
        """Its status, and its words for people."""
        return f"{self.status} {self.words}".rstrip()

    @property
    def words(self) -> str:
        """Its words for people, of an error or of a task (DSP0266, *Error responses*)."""
        found = self.document.document("error") or Document({})
        told = found.documents("@Message.ExtendedInfo") or self.document.documents("Messages")
        texts = [one.text("Message") for one in told]
        words = "; ".join(one for one in texts if one) or found.text("message") or ""
        return words[:WORDS_MAX]

    def _path(self, reference: str | None) -> str | None:
        return None if reference is None else path_of(reference, self.path)


class RedfishExchange:
    """Asks one service, over as few connections as it allows: each is checked before it is used."""

    def __init__(self, service: ServiceAddress, trust: Trust, now: Callable[[], float]) -> None:
        self.name = f"BMC at {service.service}"
        self._origin = f"https://{service.service}"
        self._pin = trust.pin
        self._now = now
        self._ends_at = now() + CALL_S_MAX
        self._ended = threading.Event()
        self._http = CheckedConnection(
            service.host,
            service.port,
            context=_context(trust),
            check=self._check_pin,
            within_s=ANSWER_S_MAX,
        )

    def ask(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> RedfishAnswer:
        """The answer of the place that the service sends us to, which is one of its own.

        Raises:
            RedfishError: there is none.
            HapteraError: its certificate is another than before.
        """
        for _ in range(REDIRECTS_MAX + 1):
            answer = self._ask(method, path, content, headers)
            place = answer.headers["Location"]
            if answer.status not in _REDIRECTS or place is None:
                return answer
            path = self._redirected(path, place)
            if answer.status == HTTPStatus.SEE_OTHER:  # The answer to what has been done.
                method, content = "GET", None
        raise RedfishError(f"{self.name} redirects more than {REDIRECTS_MAX} times")

    @property
    def left_s(self) -> float:
        """How long this call may still take."""
        return self._ends_at - self._now()

    def wait(self, for_s: float) -> None:
        """Do nothing for so long, or until somebody hangs up."""
        self._ended.wait(for_s)

    def hang_up(self) -> None:
        """From another thread: end what is under way."""
        self._ended.set()
        connected = self._http.sock
        if connected is not None:
            with suppress(OSError):
                # Not its own method, which lets go of TLS first: what follows would be in the open.
                socket.socket.shutdown(connected, socket.SHUT_RDWR)

    def close(self) -> None:
        self._http.close()

    def _ask(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> RedfishAnswer:
        if (within_s := min(ANSWER_S_MAX, self.left_s)) <= 0:
            raise RedfishError(f"{self.name} takes more than {CALL_S_MAX:g} s for one call")
        self._http.timeout = within_s
        if method == "POST":
            # Over a used connection it could be asked twice, and it may press a button, or open a
            # session (RFC 9110, 9.2.2: it is not idempotent).
            self.close()
        if is_used := self._http.sock is not None:
            self._http.sock.settimeout(within_s)
        typed = {} if content is None else {"Content-Type": "application/json"}
        all_headers = {**_HEADERS, **typed, **headers}
        try:
            try:
                answer, coded = self._answered(method, path, content, all_headers)
            except _HUNG_UP:
                # Some close a connection without a word. What may have been done before its answer
                # was lost is idempotent.
                if not is_used:
                    raise
                self._http.close()
                answer, coded = self._answered(method, path, content, all_headers)
        except ssl.SSLCertVerificationError as error:
            raise RedfishError(f"{self.name} is not trusted: {error.verify_message}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()  # What still comes would be taken for the answer to the next request.
            raise RedfishError(f"{self.name} does not answer: {error!r}"[:WORDS_MAX]) from None
        codings = answer.headers["Content-Encoding"] or ""
        return RedfishAnswer(answer.status, answer.headers, self._decoded(coded, codings), path)

    def _answered(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        self._http.request(method, path, content, headers)
        answer = self._http.getresponse()
        if answer.status < HTTPStatus.OK:
            raise http.client.HTTPException(f"{answer.status} is no last answer")
        return answer, self._content(answer)

    def _content(self, answer: http.client.HTTPResponse) -> bytes:
        content = b""
        while piece := answer.read(PIECE_BYTES):
            content += piece
            if len(content) > ANSWER_BYTES_MAX:
                self.close()  # What is longer is left unread, and with it the connection.
                raise RedfishError(f"{self.name} answers more than {ANSWER_BYTES_MAX} bytes")
            if self.left_s <= 0:
                raise RedfishError(f"{self.name} takes more than {CALL_S_MAX:g} s for one call")
        if answer.length:
            raise http.client.IncompleteRead(content, answer.length)
        return content

    def _decoded(self, content: bytes, codings: str) -> bytes:
        """Without the codings that it was sent in, though we accept none."""
        for coding in reversed(codings.lower().replace(",", " ").split()):
            if coding == "identity" or not content:
                continue
            if coding not in ("gzip", "x-gzip", "deflate"):
                raise RedfishError(f"{self.name} answers in a coding that was not asked: {coding}")
            content = self._inflated(content)
        return content

    def _inflated(self, content: bytes) -> bytes:
        for window in (_ANY_HEAD, _BARE):
            inflating = zlib.decompressobj(window)
            try:
                plain = inflating.decompress(content, ANSWER_BYTES_MAX + 1)
            except zlib.error:
                continue
            if len(plain) > ANSWER_BYTES_MAX:
                raise RedfishError(f"{self.name} answers more than {ANSWER_BYTES_MAX} bytes")
            if inflating.eof:
                return plain
        raise RedfishError(f"{self.name} answers what is not compressed as it says")

    def _redirected(self, path: str, place: str) -> str:
        try:
            ours, there = urlsplit(self._origin), urlsplit(urljoin(self._origin + path, place))
            same = (there.scheme, there.hostname) == (ours.scheme, ours.hostname)
            same = same and (there.port or HTTPS_PORT) == ours.port
        except ValueError:
            same = False
        if not same:
            raise RedfishError(
                f"{self.name} redirects to {place[:WORDS_MAX]}, where no password goes"
            )
        return path_of(place, path)

    def _check_pin(self, connected: ssl.SSLSocket) -> None:
        pin = self._pin
        if pin is None:
            return
        certificate = connected.getpeercert(binary_form=True)
        assert certificate is not None
        seen = hashlib.sha256(certificate).hexdigest()
        if not pin.exists():
            draft = pin.with_suffix(".new")
            draft.write_text(seen, encoding="ascii")
            draft.replace(pin)
        known = pin.read_text(encoding="ascii")
        if known != seen:
            raise HapteraError(
                f"{self.name} has another certificate than before: sha256 {seen}",
                do=f"find out why; if it is right, remove {pin}",
            )


def _context(trust: Trust) -> ssl.SSLContext:
    if trust.pin is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        return ssl.create_default_context(cafile=trust.ca_file)
    except OSError as error:
        raise HapteraError(
            f"ca_file {trust.ca_file}: {error.strerror}", do="name a file of PEM"
        ) from None
