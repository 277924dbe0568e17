"""The client for programs that wait: a socket at a time."""

import select
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar, assert_never

from haptera.client.access import Access
from haptera.client.address import Address, UnixSocket, parse_address
from haptera.client.call import ApiAnswer, ApiCall
from haptera.client.protocol import (
    ANSWER_WITHIN_S,
    KEPT_MAX,
    Arrived,
    Broken,
    Open,
    Operation,
    Pause,
    Receive,
    Send,
    Waiting,
    asking,
    following,
    reading,
)
from haptera.model.errors import HapteraError
from haptera.rest.schemas import Event
from haptera.rest.unix_path import short

_RECEIVED_BYTES_MAX: Final = 1 << 18

Shape = TypeVar("Shape")
Outcome = TypeVar("Outcome")


class Client:
    """Asks the API where, and as whom, `access` says; several threads may use one.

    `waiting` is called where an answer takes long, and nothing is waited for longer than
    `within_s`.
    """

    def __init__(
        self,
        access: Access,
        waiting: Callable[[], None] | None = None,
        within_s: float = ANSWER_WITHIN_S,
    ) -> None:
        self.access = access
        self._waiting = waiting
        self._within_s = within_s
        self._address = parse_address(access.url)
        self._kept: list[_Wire] = []

    def ask(self, call: ApiCall[Shape]) -> Shape:
        """Make a call; its answer.

        Raises:
            UnreachableError: nobody answers there.
            RefusedError: the server refuses, and says why.
        """
        return self.tagged(call).value

    def tagged(self, call: ApiCall[Shape]) -> ApiAnswer[Shape]:
        """Make a call; its answer, with the tag of its version.

        Raises:
            UnreachableError, RefusedError: as of `ask`.
        """
        kept = self._kept.pop() if call.repeatable and self._kept else None
        wire, keeps = kept or self._wire(), False
        try:
            [done] = _told(wire, asking(call, self.access, kept=kept is not None))
            keeps = done.keeps and len(self._kept) < KEPT_MAX
        finally:
            if keeps:
                self._kept.append(wire)
            else:
                wire.close()
        return done.given

    def follow(self, call: ApiCall[Event]) -> Iterator[Arrived | Broken]:
        """What changes, as it does, over breaks, until nobody listens.

        Raises:
            RefusedError: the server refuses, and says why.
        """
        with closing(self._wire()) as wire:
            told: Iterator[Arrived | Broken] = _told(wire, following(call, self.access))
            yield from told

    def lines(self, call: ApiCall[Shape]) -> Generator[Shape, None, None]:
        """Make a call that is answered in lines; each as it comes. To close it hangs up.

        Raises:
            UnreachableError, RefusedError: as of `ask`; also where the answer breaks off.
        """
        with closing(self._wire()) as wire:
            yield from (line.told for line in _told(wire, reading(call, self.access)))

    def close(self) -> None:
        while self._kept:
            self._kept.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wire(self) -> "_Wire":
        return _Wire(self._address, self.access, self._waiting, self._within_s)


class _Wire:
    """One connection at a time."""

    def __init__(
        self,
        address: Address,
        access: Access,
        waiting: Callable[[], None] | None,
        within_s: float,
    ) -> None:
        self._address = address
        self._access = access
        self._waiting = waiting
        self._within_s = within_s
        self._socket: socket.socket | None = None

    def do(self, operation: Operation) -> bytes:
        """Do an operation; what was received, if it is that.

        Raises:
            OSError: it could not be done.
        """
        match operation:
            case Open(within_s):
                self.close()
                self._socket = _connected(self._address, self._access, within_s)
            case Send(data, within_s):
                self._open(within_s).sendall(data)
            case Receive(within_s):
                return self._open(min(within_s, self._within_s)).recv(_RECEIVED_BYTES_MAX)
            case Pause(for_s):
                select.select((), (), (), for_s)
            case Waiting():
                if self._waiting is not None:
                    self._waiting()
            case _:
                assert_never(operation)
        return b""

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _open(self, within_s: float) -> socket.socket:
        assert self._socket is not None, "it was opened first"
        self._socket.settimeout(within_s)
        return self._socket


def _told(
    wire: _Wire, operations: Generator[Operation | Outcome, bytes, None]
) -> Iterator[Outcome]:
    """Do the operations; what comes of them, as it does."""
    resume: Callable[[], Operation | Outcome] = operations.__next__
    with suppress(StopIteration):
        while True:
            one = resume()
            resume = operations.__next__
            if not isinstance(one, Operation):
                yield one
                continue
            try:
                resume = partial(operations.send, wire.do(one))
            except OSError as error:
                resume = partial(operations.throw, error)


def _connected(address: Address, access: Access, within_s: float) -> socket.socket:
    if isinstance(address, UnixSocket):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(within_s)
            with short(Path(address.path)) as name:
                connection.connect(name)
        except OSError:
            connection.close()
            raise
        return connection
    plain = socket.create_connection((address.name, address.port), within_s)
    if not address.secure:
        return plain
    from haptera.client.trust import context_of  # only here: ssl takes as long as all else

    try:
        return context_of(access).wrap_socket(plain, server_hostname=address.name)
    except (OSError, HapteraError):
        plain.close()
        raise
