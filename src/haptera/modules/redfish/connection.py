"""A connection to one Redfish service: HTTPS, its certificate checked before any credential goes.

`http.client` is the standard library's; it blocks, so that all of this runs in a thread.
"""

import hashlib
import http.client
import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from haptera.sdk import HapteraError, Refused

HTTPS_PORT: Final = 443
# Old BMCs take seconds for a handshake.
ANSWER_S_MAX: Final = 8.0
ANSWER_BYTES_MAX: Final = 1 << 20
WORDS_MAX: Final = 300


class RedfishError(Exception):
    """The BMC does not answer, or its answer cannot be understood."""


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
        host, colon, port = place.rpartition(":")
        if not colon or place.endswith("]"):
            host, port = place, str(HTTPS_PORT)
        if not host or "://" in text.removeprefix("https://") or not _is_port(port):
            do = "write ADDRESS, ADDRESS:PORT, or either with /redfish/v1/Systems/ID behind it"
            raise HapteraError(f"{text!r} is no address of a Redfish service", do=do)
        return cls(host.removeprefix("[").removesuffix("]"), int(port), slash + path)


class RedfishConnection:
    """A context manager: connected and trusted when entered.

    Without a `pin`, what `ca_file`, or the system's own list, vouches for is trusted. `pin` is the
    file of the fingerprint of the one certificate that is; the first one seen is written there.
    """

    def __init__(
        self,
        service: ServiceAddress,
        credentials: tuple[str, str],
        ca_file: Path | None,
        pin: Path | None,
    ) -> None:
        self._service = service
        self._pin = pin
        self._headers = {
            "Authorization": f"Basic {b64encode(':'.join(credentials).encode()).decode()}",
            "Accept": "application/json",
            "OData-Version": "4.0",
        }
        self._http = http.client.HTTPSConnection(
            service.host,
            service.port,
            timeout=ANSWER_S_MAX,
            context=_context(ca_file, verified=pin is None),
        )

    def __enter__(self) -> Self:
        try:
            self._http.connect()
        except ssl.SSLCertVerificationError as error:
            raise RedfishError(f"{self._name} is not trusted: {error.verify_message}") from None
        except OSError as error:
            raise RedfishError(f"{self._name} does not answer: {error}") from None
        try:
            self._check_pin()
        except BaseException:
            self._http.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        """The content of the service's answer.

        Raises:
            Refused: it says that it does not do it.
            RedfishError: it does not answer, or nobody knows what it has done.
        """
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        # A change is of what was read: some services demand to be told which state that was.
        if method == "PATCH" and (tag := self._tag_of(path)):
            headers["If-Match"] = tag
        return self._exchange(method, path, body, headers)[1]

    def _tag_of(self, path: str) -> str | None:
        return self._exchange("GET", path, None, self._headers)[0]

    def _exchange(
        self, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]
    ) -> tuple[str | None, bytes]:
        sent = None if body is None else msgspec.json.encode(body)
        try:
            self._http.request(method, path, sent, dict(headers))
            answer = self._http.getresponse()
            content = answer.read(ANSWER_BYTES_MAX)
            # What is longer is left unread, and with it the connection.
            if not answer.isclosed() and answer.read(1):
                raise RedfishError(f"{self._name} answers more than {ANSWER_BYTES_MAX} bytes")
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RedfishError(f"{self._name} does not answer: {error!r}"[:WORDS_MAX]) from None
        self._check(method, answer.status, content)
        return answer.getheader("ETag"), content

    def _check(self, method: str, status: int, content: bytes) -> None:
        if status < HTTPStatus.MULTIPLE_CHOICES:
            return
        said = f"{status} {_message(content)}".rstrip()
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise RedfishError(f"{self._name} lets nobody in: {said}")
        changes = method != "GET"
        if changes and HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise Refused(said)
        raise RedfishError(f"{self._name} answers {said}")

    def _check_pin(self) -> None:
        connected = self._http.sock
        if self._pin is None:
            return
        assert isinstance(connected, ssl.SSLSocket)
        certificate = connected.getpeercert(binary_form=True)
        assert certificate is not None
        seen = hashlib.sha256(certificate).hexdigest()
        if not self._pin.exists():
            draft = self._pin.with_suffix(".new")
            draft.write_text(seen, encoding="ascii")
            draft.replace(self._pin)
        known = self._pin.read_text(encoding="ascii")
        if known != seen:
            raise HapteraError(
                f"{self._name} has another certificate than before: sha256 {seen}",
                do=f"find out why; if it is right, remove {self._pin}",
            )

    @property
    def _name(self) -> str:
        return f"BMC at {self._service.host}:{self._service.port}"


def _context(ca_file: Path | None, *, verified: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise HapteraError(
            f"ca_file {ca_file}: {error.strerror}", do="name a file of PEM"
        ) from None
    if not verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class _Said(msgspec.Struct, frozen=True):
    message: str = ""
    more: list[dict[str, Any]] = msgspec.field(name="@Message.ExtendedInfo", default=[])


class _Refusal(msgspec.Struct, frozen=True):
    error: _Said = _Said()


def _message(content: bytes) -> str:
    """What an error of the service says in words (DSP0266, error responses)."""
    try:
        said = msgspec.json.decode(content, type=_Refusal).error
    except (msgspec.DecodeError, RecursionError):
        return ""
    texts = [text for one in said.more if isinstance(text := one.get("Message"), str)]
    return "; ".join(texts or [said.message])[:WORDS_MAX]


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) < 1 << 16
