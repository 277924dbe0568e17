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
from haptera.core.state.limits import S
from haptera.daemon.settings import PROMOTED, home_of
from haptera.daemon.tree.following import Following
from haptera.daemon.tree.leased import LeaseInEtcd, lease_in_etcd
from haptera.daemon.tree.replicas import TERM, read_beside, term_of
from haptera.model.errors import ConflictError, HapteraError
from haptera.rest.unix_path import short
from haptera.runtime.clock import now_ns
from haptera.runtime.identity.pki import check_opens
from haptera.runtime.identity.private import private_directory, write_durable
from haptera.runtime.identity.sealing import Sealer
from haptera.runtime.log import log_to_stderr
from haptera.runtime.store.feed import Follower
from haptera.runtime.store.replica import Replica
from haptera.runtime.store.store import STATE_FILE

SOCKET: Final = "standby.sock"
# One that had all its primary's commits promotes itself so long after that, and no later.
PROMOTES_WITHIN_S: Final = 60
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
    """A directory that follows the parent that `access` leads to.

    Where `etcd` has endpoints, it promotes itself once the parent's lease there has run out; it is
    known there by its `name`.
    """

    directory: Path
    access: Access
    name: str
    etcd: tuple[str, ...] = ()

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
        following = Following(
            Follower.STANDBY, self.access, replica, self.home, self._outwait if self.etcd else None
        )
        try:
            with _listening(self.home / SOCKET) as door:
                self._follow(following, replica, door)
        finally:
            following.close()
            replica.close()

    def _follow(self, following: Following, replica: Replica, door: socket.socket) -> None:
        said: str | None = ""
        wait_s = 0.0
        whole_at: int | None = None
        while not self._asked(door, wait_s, following, replica):
            try:
                following.ask()
            except HapteraError as error:
                wait_s = ASK_AGAIN_S
                unpromoted = self._unpromoted(replica, whole_at)
                if unpromoted is None:
                    return
                if (text := f"{error}{unpromoted}") != said:
                    _log.warning("does not follow: %s", text)
                said = text
            else:
                wait_s = 0.0
                whole_at = now_ns() if following.lag == 0 else whole_at
                if said is not None:
                    _log.info("follows %s", self.access.url)
                    self._warn()
                said = None

    def _check_key(self) -> None:
        """See that a parent could be started with what is here: to find out later is too late.

        Raises:
            HapteraError: its authority is sealed with a key that this process was not given.
        """
        check_opens(self.home, Sealer.given())

    def _warn(self) -> None:
        """Say now what would keep it from being promoted."""
        try:
            self._check_key()
        except HapteraError as error:
            _log.warning("cannot be promoted: %s", error)

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
        except (ValueError, RecursionError):
            return Promoted(refusal="this is not a command")
        if not order.anyway and self._primary_answers():
            return Promoted(
                lag=following.lag, refusal=f"the primary at {self.access.url} still answers"
            )
        try:
            self._check_key()
            lease = self._lease()
            held = None if lease is None else lease.take()
            if held is not None:
                return Promoted(lag=following.lag, refusal=held)
            return Promoted(self._promote(replica), following.lag)
        except HapteraError as error:
            return Promoted(refusal=str(error))

    def _promote(self, replica: Replica) -> int:
        """Be the store of a parent, in a new term; returns its revision."""
        revision = replica.promote()
        write_durable(self.home / PROMOTED, b"")
        write_durable(self.home / TERM, str(term_of(read_beside(self.home)) + 1).encode())
        return revision

    def _unpromoted(self, replica: Replica, whole_at: int | None) -> str | None:
        """Take over if the primary's lease has run out; why it did not, None if it did."""
        if not self.etcd:
            return ""
        if whole_at is None or now_ns() - whole_at > PROMOTES_WITHIN_S * S:
            return "; it does not promote itself, for it did not have all commits lately"
        try:
            self._check_key()
            lease = self._lease()
            held = None if lease is None else lease.take()
            if held is not None:
                return f"; {held}"
            _log.warning("took the lease: promoted at revision %d", self._promote(replica))
        except HapteraError as error:
            return f"; it does not promote itself: {error}"
        return None

    def _outwait(self) -> None:
        """The primary takes long to answer: hang up once it has no lease any more."""
        lease = self._lease()
        for _ in range(lease.length_s + 1 if lease is not None else 0):
            if lease is not None and not lease.is_held():
                raise UnreachableError("the primary does not answer, and its lease has run out")
            select.select((), (), (), 1)

    def _lease(self) -> LeaseInEtcd | None:
        return lease_in_etcd(self.etcd, self.home, self.name, later=1)

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
        except (OSError, ValueError, RecursionError) as error:
            raise UnreachableError(
                "no standby runs here"
                if isinstance(error, FileNotFoundError | ConnectionRefusedError)
                else f"the standby does not answer: {error}",
                where=str(place),
                do="name the --dir of a running `haptera standby`",
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
