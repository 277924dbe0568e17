"""A client of the API: which cluster, by which token, and one request at a time."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from threading import Timer
from typing import Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import click
import msgspec

from haptera.api.shapes import ProblemView
from haptera.model.errors import HapteraError, InputError

CLIENT_FILE: Final = Path(".haptera") / "client.json"
VARIABLE: Final = "HAPTERA_CLIENT"
ANSWER_WITHIN_S: Final = 60.0
TELL_WAITING_AFTER_S: Final = 3.0
PLACES_SEARCHED_MAX: Final = 64

Shape = TypeVar("Shape")


class UnreachableError(HapteraError):
    """There is nobody to ask."""


class ClientFile(msgspec.Struct, frozen=True):
    """The file that says where the API is; `constants` are handed in with each site file.

    `page` is the address of the status page, with a read-only token.
    """

    url: str
    token: str
    constants: dict[str, str] = {}
    page: str | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """Asks the API at `url` as whoever holds `token`."""

    url: str
    token: str = field(repr=False)
    constants: Mapping[str, str] = field(default_factory=dict)
    page: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}

    def get(self, path: str, shape: type[Shape], query: Mapping[str, str] | None = None) -> Shape:
        return self.ask("GET", path, shape, query=query)

    def ask(
        self,
        method: str,
        path: str,
        shape: type[Shape],
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
    ) -> Shape:
        """One request and its answer.

        Raises:
            UnreachableError: nobody answers there.
            HapteraError: the answer is a problem, in the server's words.
        """
        data = None if body is None else msgspec.json.encode(body)
        target = quote(path, safe="/:@") + (f"?{urlencode(query)}" if query else "")
        connection = self._connection()
        waiting = Timer(TELL_WAITING_AFTER_S, _tell_waiting, (self.url,))
        waiting.daemon = True
        waiting.start()
        try:
            connection.request(method, target, body=data, headers=self.headers)
            response = connection.getresponse()
            status, answer = response.status, response.read()
        except (OSError, HTTPException) as error:
            raise unreachable(self.url, error) from None
        finally:
            waiting.cancel()
            connection.close()
        if status >= 400:
            raise problem_error(answer, self.url, status)
        return _decoded(answer, shape, self.url)

    def _connection(self) -> HTTPConnection:
        parts = urlsplit(self.url)
        sort = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        return sort(parts.hostname or "", parts.port, timeout=ANSWER_WITHIN_S)


def find_client(given: Path | None, start: Path) -> tuple[Client, str | None]:
    """The client of the file given, named by $HAPTERA_CLIENT, or nearest above `start`.

    Returns it with a warning, where others can read the file.

    Raises:
        HapteraError: there is no such file, or it is none.
    """
    path = given or _named() or _nearest(start)
    try:
        text, mode = path.read_bytes(), path.stat().st_mode
    except OSError as error:
        raise UnreachableError(
            f"no client file: {error.strerror}", where=str(path), do="name one with --client"
        ) from None
    try:
        file = msgspec.json.decode(text, type=ClientFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HapteraError(
            f"is no client file: {error}",
            where=str(path),
            do='write {"url": "http://…", "token": "…"}',
        ) from None
    if urlsplit(file.url).scheme not in ("http", "https"):
        raise HapteraError(f"{file.url!r} is no URL", where=str(path), do="begin with http://")
    open_to_others = mode & (stat.S_IRWXG | stat.S_IRWXO)
    warning = f"{path} can be read by others; chmod 600 it" if open_to_others else None
    return Client(file.url.rstrip("/"), file.token, file.constants, file.page), warning


def unreachable(url: str, error: Exception) -> UnreachableError:
    # By its number: what asyncio puts in words names the address once more.
    number = error.errno if isinstance(error, OSError) else None
    words = os.strerror(number) if number is not None and number > 0 else str(error)
    return UnreachableError(
        f"cannot reach the parent: {words or type(error).__name__}",
        where=url,
        do="see that it runs, and that the client file names its address",
    )


def problem_error(answer: bytes, url: str, status: int) -> HapteraError:
    """The server's problem document as the error that it was there."""
    try:
        view = msgspec.json.decode(answer, type=ProblemView)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return HapteraError(f"answered {status} without a reason", where=url, do="see its log")
    if status == HTTPStatus.UNAUTHORIZED:
        advice = "use the client file that this parent wrote last, .haptera/client.json"
        return HapteraError(view.what, where=url, do=advice)
    errors = [HapteraError(one.what, where=one.where, do=one.do) for one in view.errors]
    return InputError(errors or [HapteraError(view.what, where=view.where, do=view.do)])


def _tell_waiting(url: str) -> None:
    click.echo(f"waiting for {url}, for up to {ANSWER_WITHIN_S:.0f} s", err=True)


def _named() -> Path | None:
    text = os.environ.get(VARIABLE)
    return Path(text) if text else None


def _nearest(start: Path) -> Path:
    for folder in [start, *start.parents][:PLACES_SEARCHED_MAX]:
        if (path := folder / CLIENT_FILE).exists():
            return path
    raise UnreachableError(
        f"no {CLIENT_FILE} here or in a folder above",
        where=str(start),
        do=f"start a lab with `haptera lab`, or name a file with --client or ${VARIABLE}",
    )


def _decoded(answer: bytes, shape: type[Shape], url: str) -> Shape:
    try:
        return msgspec.json.decode(answer, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HapteraError(
            f"an answer of another shape: {error}",
            where=url,
            do="use the same version here as there",
        ) from None
