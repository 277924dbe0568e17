"""What a parent tells those who follow its store: commits, the whole file, and what lies beside."""

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from haptera.daemon.cluster import FILE
from haptera.model.errors import HapteraError
from haptera.rest.schemas import ReplicaView
from haptera.runtime.store.feed import Feed, Follower
from haptera.runtime.store.sqlite_writer import Failure
from haptera.runtime.store.store import Store

# How long a follower that has everything is left waiting; then it asks again, and is there.
WAIT_S: Final = 1.0
# The authority, the cluster's name and modules, how often a standby was promoted, and the secrets
# with who may name them.
TERM: Final = "term"
_FILES: Final = ("ca.key", FILE, TERM)
_FOLDERS: Final = ("secrets", "secret-users")


class Replicas:
    """Answers followers of one store, whose directory is `home`; nodes reach it at `address`."""

    def __init__(self, feed: Feed, store: Store, home: Path, address: str | None = None) -> None:
        self.feed = feed
        self._store = store
        self._home = home
        self._address = address

    async def tell(self, follower: Follower, log: int, at: int, files: str) -> ReplicaView:
        """What a follower lacks that has all up to a place, and these files."""
        feed = self.feed
        feed.heard(follower, log, at)
        if (log, at) == (feed.log, feed.at):
            await feed.wait(WAIT_S)
        batches = feed.since(log, at)
        whole = None
        if batches is None:
            at, whole = await self._copy()
            batches = []
        beside = read_beside(self._home)
        digest = digest_of(beside)
        return ReplicaView(
            feed.log,
            at + len(batches),
            feed.at,
            batches,
            digest,
            whole,
            beside if digest != files else None,
            self._address,
        )

    async def _copy(self) -> tuple[int, bytes]:
        """The whole file, and the place that it is of.

        Raises:
            HapteraError: it cannot be read now.
        """
        loop = asyncio.get_running_loop()
        copied: asyncio.Future[tuple[int, bytes | Failure]] = loop.create_future()

        def done(result: bytes | Failure) -> None:
            # What was committed before has been added to the feed by then, and nothing after.
            loop.call_soon_threadsafe(lambda: copied.set_result((self.feed.at, result)))

        self._store.copy(done)
        at, result = await copied
        if isinstance(result, Failure):
            raise HapteraError(result.text, do="check the disk; the follower asks again")
        return at, result


def read_beside(home: Path) -> dict[str, bytes]:
    """What a parent needs besides its state file, by path."""
    places = [home / name for name in _FILES]
    for folder in _FOLDERS:
        if (home / folder).is_dir():
            places += sorted(one for one in (home / folder).iterdir() if one.suffix != ".new")
    return {str(one.relative_to(home)): one.read_bytes() for one in places if one.is_file()}


def is_beside(name: str) -> bool:
    """Whether a path is that of a file which a parent needs besides its state file."""
    folder, slash, file = name.rpartition("/")
    return file not in ("", "..") and (folder in _FOLDERS if slash else file in _FILES)


def term_of(files: Mapping[str, bytes]) -> int:
    """How often a standby was promoted: a parent of an earlier term has been superseded."""
    text = files.get(TERM, b"0")
    return int(text) if text.isdigit() else 0


def digest_of(files: dict[str, bytes]) -> str:
    """What tells one set of files from another."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()
