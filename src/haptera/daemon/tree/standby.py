"""`haptera standby`: follows a parent's store; `haptera promote` makes it the parent."""

import contextlib
import logging
import select
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from haptera.client import Access, calls
from haptera.client import Client as Asker
from haptera.client.errors import UnreachableError
from haptera.daemon.settings import PROMOTED, home_of
from haptera.daemon.tree.following import Following
from haptera.daemon.tree.replicas import TERM, read_beside, term_of
from haptera.model.errors import ConflictError, HapteraError
from haptera.rest.unix_path import short
from haptera.runtime.identity.private import private_directory, write_durable
from haptera.runtime.log import log_to_stderr
from haptera.runtime.store.feed import Follower
from haptera.runtime.store.replica import Replica
from haptera.runtime.store.store import STATE_FILE

SOCKET: Final = "standby.sock"
ASK_AGAIN_S: Final = 0.2
ANSWER_WITHIN_S: Final = 30.0
_SAID_BYTES_MAX: Final = 4096

_log = logging.getLogger(__name__)


class PromoteOrder(msgspec.Struct, frozen=True):
    """What `haptera promote` says; with `anyway`, though the primary still answers."""

    anyway: bool = False


class Promoted(msgspec.Struct, frozen=True):
    """What it is told: the revision that is held, how many commits lack; or why it is refused."""

    revision: int = 0
    lag: int | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Standby:
    """A directory that follows the parent that `access` leads to."""

    directory: Path
    access: Access

    @property
    def home(self) -> Path:
        return home_of(self.directory)

    def follow(self) -> None:
        """Follow until promoted.

        Raises:
            HapteraError: another process uses the directory.
        """
        log_to_stderr()
        private_directory(self.home.parent)
        private_directory(self.home)
        replica = Replica.open(self.home / STATE_FILE)
        following = Following(Follower.STANDBY, self.access, replica, self.home)
        try:
            with _listening(self.home / SOCKET) as door:
                self._follow(following, replica, door)
        finally:
            following.close()
            replica.close()

    def _follow(self, following: Following, replica: Replica, door: socket.socket) -> None:
        said: str | None = None
        wait_s = 0.0
        while not self._asked(door, wait_s, following, replica):
            try:
                following.ask()
            except HapteraError as error:
                wait_s = ASK_AGAIN_S
                if str(error) != said:
                    _log.warning("does not follow: %s", error)
                said = str(error)
            else:
                wait_s = 0.0
                if said is not None or following.lag is None:
                    _log.info("follows %s", self.access.url)
                said = None

    def _asked(
        self, door: socket.socket, wait_s: float, following: Following, replica: Replica
    ) -> bool:
        """Whether somebody came within this time and promoted it."""
        readable, _, _ = select.select([door], [], [], wait_s)
        if not readable:
            return False
        caller, _ = door.accept()
        with caller, contextlib.suppress(OSError):
            caller.settimeout(ANSWER_WITHIN_S)
            answer = self._answer(caller.recv(_SAID_BYTES_MAX), following, replica)
            caller.sendall(msgspec.json.encode(answer))
            return answer.refusal is None
        return False

    def _answer(self, said: bytes, following: Following, replica: Replica) -> Promoted:
        try:
            order = msgspec.json.decode(said, type=PromoteOrder)
        except msgspec.DecodeError:
            return Promoted(refusal="this is not a command")
        if not order.anyway and self._primary_answers():
            return Promoted(
                lag=following.lag, refusal=f"the primary at {self.access.url} still answers"
            )
        try:
            revision = replica.promote()
        except HapteraError as error:
            return Promoted(refusal=str(error))
        write_durable(self.home / PROMOTED, b"")
        write_durable(self.home / TERM, str(term_of(read_beside(self.home)) + 1).encode())
        return Promoted(revision, following.lag)

    def _primary_answers(self) -> bool:
        with Asker(self.access) as client:
            try:
                client.ask(calls.health())
            except UnreachableError:
                return False
            except HapteraError:
                return True
        return True


def promote(directory: Path, order: PromoteOrder) -> Promoted:
    """Have the standby of this directory become a parent.

    Raises:
        HapteraError: there is none, or it refuses.
    """
    place = home_of(directory) / SOCKET
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(ANSWER_WITHIN_S)
        try:
            with short(place) as name:
                caller.connect(name)
            caller.sendall(msgspec.json.encode(order))
            caller.shutdown(socket.SHUT_WR)
            answer = msgspec.json.decode(caller.recv(_SAID_BYTES_MAX), type=Promoted)
        except (OSError, msgspec.DecodeError) as error:
            raise UnreachableError(
                f"no standby answers: {error}", where=str(place), do="start `haptera standby`"
            ) from None
    if answer.refusal is not None:
        raise ConflictError(
            answer.refusal, where=str(place), do="stop the primary first, or say --anyway"
        )
    return answer


@contextlib.contextmanager
def _listening(place: Path) -> Iterator[socket.socket]:
    place.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as door:
        with short(place) as name:
            door.bind(name)
        place.chmod(0o600)
        door.listen(1)
        try:
            yield door
        finally:
            place.unlink(missing_ok=True)
