"""Sessions at Redfish services (DSP0266, *Session management*): one for each, and none left behind.

A BMC has places for few. So a session is kept for all calls, and in a file too: the next process
goes on with what a killed one had opened.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec

from haptera.modules.effects import Effect, LoginError, NotYetError
from haptera.modules.redfish.documents import path_of
from haptera.modules.redfish.exchange import (
    RedfishAnswer,
    RedfishError,
    RedfishExchange,
    ServiceAddress,
    Trust,
)
from haptera.modules.statuses import effect_of
from haptera.sdk import HapteraError

ROOT_PATH: Final = "/redfish/v1/"
SESSIONS_PATH: Final = "/redfish/v1/SessionService/Sessions"
SUFFIX: Final = ".session"
_OURS: Final = 0o600


@dataclass(frozen=True, slots=True)
class RedfishSession:
    """A session at a service: whose, by what it is known there, and where it is ended."""

    service: ServiceAddress
    trust: Trust
    user: str
    token: str = field(repr=False)
    path: str | None

    @property
    def headers(self) -> Mapping[str, str]:
        return {"X-Auth-Token": self.token}


class _Kept(msgspec.Struct, frozen=True):
    """A session as its file has it."""

    address: str
    ca_file: str | None
    pin: str | None
    user: str
    token: str
    path: str | None

    @classmethod
    def of(cls, one: RedfishSession) -> "_Kept":
        ca_file, pin = (
            None if at is None else str(at) for at in (one.trust.ca_file, one.trust.pin)
        )
        return cls(str(one.service), ca_file, pin, one.user, one.token, one.path)

    @property
    def session(self) -> RedfishSession:
        ca_file, pin = (None if at is None else Path(at) for at in (self.ca_file, self.pin))
        service, trust = ServiceAddress.parse(self.address), Trust(ca_file, pin)
        return RedfishSession(service, trust, self.user, self.token, self.path)


class RedfishSessions:
    """The sessions of this process, one for each service: one call at a time is made to each."""

    def __init__(self) -> None:
        self._open: dict[ServiceAddress, RedfishSession] = {}
        self._folder: Path | None = None

    def open_folder(self, folder: Path) -> None:
        """Keep them in files there from now on, and go on with those that are there."""
        self._folder = folder
        for file in folder.glob(f"*{SUFFIX}"):
            with suppress(OSError, HapteraError, msgspec.DecodeError):
                session = msgspec.json.decode(file.read_bytes(), type=_Kept).session
                self._open[session.service] = session

    def known(self, service: ServiceAddress) -> RedfishSession | None:
        return self._open.get(service)

    def all(self) -> list[RedfishSession]:
        return list(self._open.values())

    def keep(self, session: RedfishSession) -> None:
        self._open[session.service] = session
        if (file := self._file(session.service)) is not None:
            draft = file.with_suffix(".new")
            draft.touch(_OURS)
            draft.write_bytes(msgspec.json.encode(_Kept.of(session)))
            draft.replace(file)

    def end(self, session: RedfishSession, exchange: RedfishExchange) -> None:
        """Let the service forget it, if it answers; if not, it will some time by itself."""
        self.forget(session)
        if session.path is not None:
            with suppress(RedfishError, HapteraError):
                exchange.ask("DELETE", session.path, None, session.headers)
        if (file := self._file(session.service)) is not None:
            file.unlink(missing_ok=True)

    def forget(self, session: RedfishSession) -> None:
        """Go on without it; the next process that opens the folder goes on with it."""
        self._open.pop(session.service, None)

    def _file(self, service: ServiceAddress) -> Path | None:
        if self._folder is None:
            return None
        return self._folder / f"{sha256(str(service).encode()).hexdigest()[:32]}{SUFFIX}"


sessions: Final = RedfishSessions()


def end_session(session: RedfishSession, now: Callable[[], float]) -> None:
    """End one over a connection of its own."""
    with suppress(HapteraError):
        exchange = RedfishExchange(session.service, session.trust, now)
        try:
            sessions.end(session, exchange)
        finally:
            exchange.close()


def open_session(
    exchange: RedfishExchange,
    service: ServiceAddress,
    trust: Trust,
    credentials: tuple[str, str],
    basic: Mapping[str, str],
) -> RedfishSession:
    """A session that was just opened, and is kept; `basic` ends one that we cannot use.

    Raises:
        LoginError: the service does not know this name and password.
        NotYetError: it has no place for a session.
        RedfishError: it does not answer.
        HapteraError: it has no sessions.
    """
    user, password = credentials
    content = msgspec.json.encode({"UserName": user, "Password": password})
    answer = exchange.ask("POST", SESSIONS_PATH, content, {})
    if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
        answer = exchange.ask("POST", _linked(exchange), content, {})
    if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        raise _refusal(exchange.name, answer)
    path, token = _path(answer), answer.headers["X-Auth-Token"]
    if token is None:
        if path is not None:
            with suppress(RedfishError):
                exchange.ask("DELETE", path, None, basic)
        raise HapteraError(
            f"{exchange.name} opens a session without a token", do="set `auth: basic` for it"
        )
    session = RedfishSession(service, trust, user, token, path)
    sessions.keep(session)
    return session


def _linked(exchange: RedfishExchange) -> str:
    """Where sessions are, by the service's root, where they are not at the usual place."""
    root = exchange.ask("GET", ROOT_PATH, None, {})
    return root.link("Links", "Sessions") or SESSIONS_PATH


def _path(answer: RedfishAnswer) -> str | None:
    """Where the session is, by the head or by what its body says."""
    number = answer.document.text("Id")
    usual = None if number is None else path_of(f"{SESSIONS_PATH}/{number}", answer.path)
    return answer.location or answer.link() or usual


def _refusal(name: str, answer: RedfishAnswer) -> Exception:
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return LoginError(f"{name} refuses the login: {answer.said}")
    said = f"{name} opens no session: {answer.said}"
    match effect_of(answer.status):
        case Effect.NOT_YET:
            return NotYetError(said, answer.after_s)
        case Effect.UNKNOWN:
            return RedfishError(said, status=answer.status)
        case _:
            return HapteraError(said, do="set `auth: basic` for it")
