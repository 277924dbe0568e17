"""Reading and changing what a Redfish service has, as somebody whom it knows.

Who asks is said with each request (basic authentication), or once: a session is opened when it is
first needed, kept for all calls, and opened anew where the service knows it no more.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from haptera.modules.effects import Effect, LoginError, NotYetError, failure_of
from haptera.modules.redfish.etags import tags_of
from haptera.modules.redfish.exchange import (
    RedfishAnswer,
    RedfishError,
    RedfishExchange,
    ServiceAddress,
    Trust,
)
from haptera.modules.redfish.sessions import ROOT_PATH, RedfishSession, open_session, sessions
from haptera.modules.statuses import effect_of

# How many conditions a change is tried with, and how often a task is asked for.
TAGS_MAX: Final = 5
TASK_READ_S: Final = 1.0
ANY_STATE: Final = "*"
# DSP2046, TaskState: what goes on, and what has failed.
_RUNS: Final = {"New", "Starting", "Running", "Pending", "Stopping", "Service", "Suspended"}
_FAILED: Final = {"Exception", "Killed", "Cancelled", "Cancelling", "Interrupted"}
_CONDITIONS: Final = (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.PRECONDITION_REQUIRED)


class RedfishConnection:
    """A context manager; `credentials` are a name and a password.

    It connects when it is first asked, and again where the service hangs up. With `in_session`,
    credentials are sent to open a session only.
    """

    def __init__(
        self,
        service: ServiceAddress,
        trust: Trust,
        credentials: tuple[str, str],
        now: Callable[[], float],
        *,
        in_session: bool = False,
    ) -> None:
        self._service = service.service
        self._trust = trust
        self._credentials = credentials
        self._in_session = in_session
        self._exchange = RedfishExchange(service, trust, now)
        # Some services refuse the login of a user who lacks a privilege for one resource only.
        self._is_let_in = False
        self.name = self._exchange.name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._exchange.close()

    def hang_up(self) -> None:
        """From another thread: end what is under way."""
        self._exchange.hang_up()

    @property
    def left_s(self) -> float:
        """How long this call may still take."""
        return self._exchange.left_s

    def read(self, path: str) -> RedfishAnswer:
        """What is at this path.

        Raises:
            LoginError: the service does not know who asks.
            RedfishError: it does not answer, or not with what is there.
        """
        try:
            answer = self._ask("GET", path)
        except LoginError as error:
            if not self._is_let_in:
                raise
            raise RedfishError(str(error), status=HTTPStatus.UNAUTHORIZED) from None
        # The root is for everybody.
        self._is_let_in |= _is_good(answer) and path != ROOT_PATH
        if not _is_good(answer):
            said = f"{self.name} answers {answer.said}"
            raise RedfishError(said, status=answer.status, after_s=answer.after_s)
        return answer

    def change(self, method: str, path: str, body: Mapping[str, Any], shown: RedfishAnswer) -> None:
        """Change what was read, by a PATCH or by an action of it.

        Raises:
            Refused: the service says that it does not do it, or not now.
            RedfishError: it does not answer, or nobody knows what it has done.
        """
        answer = self._changed(method, path, body, shown)
        self._check(self._finished(answer))

    def _changed(
        self, method: str, path: str, body: Mapping[str, Any], shown: RedfishAnswer
    ) -> RedfishAnswer:
        conditions = self._conditions(method, shown)
        while True:
            condition = next(conditions)
            headers = {} if condition is None else {"If-Match": condition}
            answer = self._ask(method, path, body, headers)
            if answer.status not in _CONDITIONS or condition == ANY_STATE:
                return answer

    def _conditions(self, method: str, shown: RedfishAnswer) -> Iterator[str | None]:
        """The states that a change is said to be of, each where the one before did not do.

        As it was read; as it is read now, in all the ways that services write it; no matter which.
        """
        if method == "POST":
            yield None
        tried = set[str]()
        while fresh := [one for one in tags_of(shown) if one not in tried]:
            tried.add(fresh[0])
            yield fresh[0]
            if len(tried) == TAGS_MAX:
                break
            shown = self.read(shown.path)
        if method != "POST":
            yield None
        yield ANY_STATE

    def _finished(self, answer: RedfishAnswer) -> RedfishAnswer:
        """The last answer of a task, or the one so far where it lasts longer than this call."""
        place = answer.location or answer.link("TaskMonitor") or answer.link()
        if answer.status != HTTPStatus.ACCEPTED or place is None:
            return answer
        while answer.status == HTTPStatus.ACCEPTED or _state(answer) in _RUNS:
            wait_s = answer.after_s or TASK_READ_S
            if wait_s >= self._exchange.left_s / 2:
                return answer
            self._exchange.wait(wait_s)
            try:
                answer = self._ask("GET", place)
            except LoginError as error:  # What it refuses is the reading, not the task.
                raise RedfishError(str(error)) from None
            if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
                raise RedfishError(f"{self.name} knows its task no more")
            is_busy = effect_of(answer.status) is Effect.NOT_YET
            # Likewise: the task has begun. A conflict is its own.
            if is_busy and answer.status != HTTPStatus.CONFLICT:
                said = f"{self.name} answers {answer.said} of its task"
                raise RedfishError(said, status=answer.status, after_s=answer.after_s)
        return answer

    def _check(self, answer: RedfishAnswer) -> None:
        if _state(answer) in _FAILED:
            ended = f"{self.name}: its task ended as {_state(answer)}: {answer.words}"
            raise RedfishError(ended.rstrip(": "))
        if _is_good(answer):
            return
        effect = effect_of(answer.status)
        if effect is Effect.UNKNOWN:
            raise RedfishError(f"{self.name} answers {answer.said}", status=answer.status)
        if effect is Effect.NOT_YET:
            raise NotYetError(answer.said, answer.after_s)
        raise failure_of(effect, answer.said)

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> RedfishAnswer:
        content = None if body is None else msgspec.json.encode(body)
        more = headers or {}
        known = self._known_session()
        if known is not None:
            answer = self._exchange.ask(method, path, content, {**more, **known.headers})
            if answer.status != HTTPStatus.UNAUTHORIZED:
                return answer
            # It knows it no more, and has done nothing; or takes it for another's: so it is ended.
            sessions.end(known, self._exchange)
        answer = self._exchange.ask(method, path, content, {**more, **self._authentication()})
        if answer.status == HTTPStatus.UNAUTHORIZED:
            raise LoginError(f"{self.name} refuses the login: {answer.said}")
        return answer

    def _known_session(self) -> RedfishSession | None:
        """The session that is open; that of another user is ended."""
        known = sessions.known(self._service) if self._in_session else None
        if known is not None and known.user != self._credentials[0]:
            sessions.end(known, self._exchange)
            return None
        return known

    def _authentication(self) -> Mapping[str, str]:
        known = b64encode(":".join(self._credentials).encode()).decode()
        basic = {"Authorization": f"Basic {known}"}
        if not self._in_session:
            return basic
        return open_session(
            self._exchange, self._service, self._trust, self._credentials, basic
        ).headers


def _is_good(answer: RedfishAnswer) -> bool:
    return HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES


def _state(answer: RedfishAnswer) -> str | None:
    return answer.document.text("TaskState")
