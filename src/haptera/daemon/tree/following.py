"""Keeping a copy of another parent's state file up to date, and the files that lie beside it."""

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from haptera.client import Access, Client, calls
from haptera.daemon.cluster import FILE, ClusterIdentity, read_cluster
from haptera.daemon.tree.replicas import digest_of, is_beside, read_beside, term_of
from haptera.model.errors import Code, HapteraError
from haptera.rest.schemas import ReplicaView
from haptera.runtime.identity.private import private_directory, write_durable
from haptera.runtime.store.feed import Follower
from haptera.runtime.store.replica import Replica

# A parent answers within a second, and goes on with what is long. One behind a cable
# that is cut would be waited for until TCP gives up.
SILENT_AFTER_S: Final = 8.0


class Following:
    """Copies the state of the parent that `access` leads to into `replica`, beside it its files.

    `at` is how far the parent was when it last answered, `address` where nodes reach it; `waiting`
    is called where that takes long.
    """

    def __init__(
        self,
        follower: Follower,
        access: Access,
        replica: Replica,
        home: Path,
        waiting: Callable[[], None] | None = None,
    ) -> None:
        self._follower = follower
        self._client = Client(access, waiting, SILENT_AFTER_S)
        self._replica = replica
        self._home = home
        self.at: int | None = None
        self.address: str | None = None

    def ask(self) -> bool:
        """Ask once for what comes next, which may take a second; tells whether there was any.

        Raises:
            HapteraError: the parent cannot be asked, or what it tells cannot be kept.
        """
        files = digest_of(read_beside(self._home))
        replica = self._replica
        told = self._client.ask(calls.replica(self._follower, replica.log, replica.place, files))
        self.keep(told)
        self.at = told.at
        self.address = told.address
        return bool(told.batches) or told.whole is not None

    def keep(self, told: ReplicaView) -> None:
        """Have what the parent tells, if it follows on what is here.

        Raises:
            HapteraError: it does not, or cannot be kept.
        """
        try:
            self._keep(told)
        except (sqlite3.Error, OSError, ValueError, RecursionError) as error:
            # Anything may be in it: names that are too long, numbers without an end.
            raise HapteraError(
                f"what the parent wrote cannot be kept: {error}",
                where=str(self._home),
                do="check the disk; everything is copied again",
                code=Code.FILE_UNWRITABLE,
            ) from error

    @property
    def lag(self) -> int | None:
        """How many commits are missing, as far as is known; None before the first answer."""
        return None if self.at is None else self.at - self._replica.place

    def close(self) -> None:
        self._client.close()

    def _keep(self, told: ReplicaView) -> None:
        if told.whole is None:
            self._replica.check_next(told.log, told.place - len(told.batches))
        if told.files is not None:
            check_term(self._home, told.files)
            check_same_cluster(self._home, told.files)
            keep_beside(self._home, told.files)
        if told.whole is not None:
            self._replica.take_whole(told.whole, told.log, told.place - len(told.batches))
        self._replica.take(told.batches)


def check_term(home: Path, files: Mapping[str, bytes]) -> None:
    """Follow no parent that a standby has superseded, as far as is known here.

    Raises:
        HapteraError: it has been.
    """
    theirs, known = term_of(files), term_of(read_beside(home))
    if theirs < known:
        raise HapteraError(
            f"is the parent of term {theirs}, and term {known} has begun",
            where=str(home),
            do="stop it: its standby was promoted",
            code=Code.CONFLICT,
        )


def check_same_cluster(home: Path, files: Mapping[str, bytes]) -> None:
    """Follow no parent of another cluster: what is here would be lost.

    Raises:
        HapteraError: it is of another one, or does not name its own.
    """
    if (known := read_cluster(home)) is None:
        return
    try:
        theirs = msgspec.json.decode(files.get(FILE, b""), type=ClusterIdentity).name
    except (ValueError, RecursionError):
        theirs = "without a name"
    if theirs != known.name:
        raise HapteraError(
            f"is the parent of another cluster: {theirs}, not {known.name}",
            where=str(home),
            do="check which parent the client file leads to",
            code=Code.WRONG_CLUSTER,
        )


def keep_beside(home: Path, files: Mapping[str, bytes]) -> None:
    """Have these files, and of their sort no others.

    Raises:
        HapteraError: one of them is to lie elsewhere.
    """
    for name in read_beside(home).keys() - files.keys():
        (home / name).unlink()
    for name, content in files.items():
        place = home / name
        if not is_beside(name) or not place.resolve().is_relative_to(home.resolve()):
            raise HapteraError(f"{name} is not a file of a parent", do="check which parent this is")
        private_directory(place.parent)
        write_durable(place, content)
