"""A connection to one Redfish service: HTTPS, its certificate checked before any credential goes.

Who asks is said with each request (basic authentication), or once: a session (DSP0266) is opened
when it is first needed, kept over connections, opened anew where the service knows it no more, and
ended with this process.

`http.client` is the standard library's; it blocks, so that all of this runs in a thread.
"""

import hashlib
import http.client
import ssl
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import msgspec

from haptera.kinds.host_port import HostPort
from haptera.modules.effects import DeviceError, Effect, LoginError, failure_of
from haptera.modules.redfish.statuses import effect_of
from haptera.sdk import HapteraError, Refused
from haptera.sdk.https import CheckedConnection

HTTPS_PORT: Final = 443
# Old BMCs take seconds for a handshake.
ANSWER_S_MAX: Final = 8.0
ANSWER_BYTES_MAX: Final = 1 << 20
WORDS_MAX: Final = 300
SESSIONS_PATH: Final = "/redfish/v1/SessionService/Sessions"


class RedfishError(DeviceError):
    """The BMC does not answer, or its answer cannot be understood."""


class NotLetInError(LoginError):
    """It does not know who asks, or knows it no more."""


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


@dataclass(frozen=True, slots=True)
class Trust:
    """Which certificate a service may have.

    Without a `pin`, what `ca_file`, or the system's own list, vouches for is trusted. `pin` is the
    file of the fingerprint of the one certificate that is; the first one seen is written there.
    """

    ca_file: Path | None = None
    pin: Path | None = None


@dataclass(frozen=True, slots=True)
class RedfishSession:
    """A session at a service: by what it is known there, and where it is ended."""

    service: ServiceAddress
    trust: Trust
    token: str = field(repr=False)
    path: str


# One for each service, whatever its systems, for there is one call at a time to each.
_sessions: Final[dict[ServiceAddress, RedfishSession]] = {}


class RedfishConnection:
    """A context manager; `credentials` are a name and a password.

    It connects when it is first asked, and again where the service hangs up: each time, the
    certificate is checked first. With `in_session`, credentials are sent to open a session only.
    """

    def __init__(
        self,
        service: ServiceAddress,
        trust: Trust,
        credentials: tuple[str, str],
        *,
        in_session: bool = False,
    ) -> None:
        self._service = replace(service, path="")
        self._trust = trust
        self._credentials = credentials
        self._in_session = in_session
        self._headers = {"Accept": "application/json", "OData-Version": "4.0"}
        self._http = CheckedConnection(
            service.host,
            service.port,
            context=_context(trust),
            check=self._check_pin,
            within_s=ANSWER_S_MAX,
        )

    def __enter__(self) -> Self:
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
        known = self._service in _sessions
        try:
            return self._ask(method, path, body)
        except NotLetInError:
            # Of a session that it knows no more, nothing was done.
            if not (self._in_session and known):
                raise
            _sessions.pop(self._service, None)
            return self._ask(method, path, body)

    def end_session(self) -> None:
        """Let the service forget the session, if there is one.

        Raises:
            RedfishError: it does not answer; it will forget it some time.
        """
        session = _sessions.pop(self._service, None)
        if session is not None:
            self._exchange("DELETE", session.path, None, {"X-Auth-Token": session.token})

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> bytes:
        headers = self._headers | self._authentication()
        if body is not None:
            headers["Content-Type"] = "application/json"
        # A change is of what was read: some services demand to be told which state that was.
        if method == "PATCH" and (tag := self._exchange("GET", path, None, headers)[0]["ETag"]):
            headers["If-Match"] = tag
        return self._exchange(method, path, body, headers)[1]

    def _authentication(self) -> dict[str, str]:
        if not self._in_session:
            known = b64encode(":".join(self._credentials).encode()).decode()
            return {"Authorization": f"Basic {known}"}
        if self._service not in _sessions:
            _sessions[self._service] = self._open_session()
        return {"X-Auth-Token": _sessions[self._service].token}

    def _open_session(self) -> RedfishSession:
        user, password = self._credentials
        body = {"UserName": user, "Password": password}
        headers = {**self._headers, "Content-Type": "application/json"}
        try:
            told, _ = self._exchange("POST", SESSIONS_PATH, body, headers)
        except Refused as refusal:
            raise HapteraError(
                f"{self._name} refuses a session: {refusal}", do="set `auth: basic` for it"
            ) from None
        token, place = told["X-Auth-Token"], urlsplit(told["Location"] or "").path
        if token is None or not place.startswith("/"):
            raise RedfishError(f"{self._name} opens a session without an identifier")
        return RedfishSession(self._service, self._trust, token, place)

    def _exchange(
        self, method: str, path: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]
    ) -> tuple[Message, bytes]:
        """The answer's headers, and its content."""
        sent = None if body is None else msgspec.json.encode(body)
        try:
            self._http.request(method, path, sent, dict(headers))
            answer = self._http.getresponse()
            content = answer.read(ANSWER_BYTES_MAX)
            # What is longer is left unread, and with it the connection.
            if not answer.isclosed() and answer.read(1):
                raise RedfishError(f"{self._name} answers more than {ANSWER_BYTES_MAX} bytes")
        except ssl.SSLCertVerificationError as error:
            raise RedfishError(f"{self._name} is not trusted: {error.verify_message}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RedfishError(f"{self._name} does not answer: {error!r}"[:WORDS_MAX]) from None
        self._check(method, answer.status, content)
        return answer.headers, content

    def _check(self, method: str, status: int, content: bytes) -> None:
        if status < HTTPStatus.MULTIPLE_CHOICES:
            return
        said = f"{status} {_message(content)}".rstrip()
        if status == HTTPStatus.UNAUTHORIZED:
            raise NotLetInError(f"{self._name} refuses the login: {said}")
        effect = effect_of(status)
        if method == "GET" or effect is Effect.UNKNOWN:
            raise RedfishError(f"{self._name} answers {said}")
        raise failure_of(effect, said)

    def _check_pin(self, connected: ssl.SSLSocket) -> None:
        pin = self._trust.pin
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
                f"{self._name} has another certificate than before: sha256 {seen}",
                do=f"find out why; if it is right, remove {pin}",
            )

    @property
    def _name(self) -> str:
        return f"BMC at {self._service}"


def end_sessions() -> None:
    """End all sessions of this process; where a service does not answer, it is left to it."""
    for session in list(_sessions.values()):
        with suppress(RedfishError, HapteraError, Refused):
            nobody = ("", "")
            with RedfishConnection(session.service, session.trust, nobody) as connection:
                connection.end_session()


def _context(trust: Trust) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=trust.ca_file)
    except OSError as error:
        raise HapteraError(
            f"ca_file {trust.ca_file}: {error.strerror}", do="name a file of PEM"
        ) from None
    if trust.pin is not None:
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
