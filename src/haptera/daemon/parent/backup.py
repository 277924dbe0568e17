"""A parent's state in one file, made while it runs, and a parent made of that file again."""

import hashlib
import io
import os
import sqlite3
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import msgspec

import haptera
from haptera.daemon.cluster import FILE, ClusterIdentity, read_cluster
from haptera.daemon.settings import PROMOTED, home_of
from haptera.daemon.tree.following import keep_beside
from haptera.daemon.tree.replicas import digest_of, read_beside
from haptera.model.changes import Stored
from haptera.model.errors import Code, HapteraError, UnreadableError
from haptera.runtime.identity.private import private_directory, sync, write_durable
from haptera.runtime.store.changes_sql import load
from haptera.runtime.store.replica import Replica
from haptera.runtime.store.schema_sql import open_database
from haptera.runtime.store.store import STATE_FILE

FORMAT: Final = 1
_TOLD: Final = "backup.json"
# How often files may change while they are copied before it is given up.
TRIES_MAX: Final = 3
# How long the copy waits for a writer.
BUSY_S: Final = 30.0
# All files of a backup together, which are read into memory.
_BYTES_MAX: Final = 4 << 30


class Backup(msgspec.Struct, frozen=True):
    """What a backup says of itself: whose it is, and what each of its files must be."""

    format: int
    haptera: str
    revision: int
    made_s: int
    sha256: dict[str, str]


def state_of(directory: Path) -> Path:
    """The state file of the parent of this directory.

    Raises:
        UnreadableError: there is none.
    """
    state = home_of(directory) / STATE_FILE
    if not state.exists():
        where, do = str(state.parent), "name --dir"
        raise UnreadableError("there is no parent's state here", where=where, do=do)
    return state


def back_up(directory: Path, file: Path, wall_s: float) -> Backup:
    """Write all that a parent must not lose into a new file; the parent may run meanwhile.

    Raises:
        HapteraError: there is no parent, the file is there already, or the copy is not sound.
    """
    home = state_of(directory).parent
    if file.exists():
        raise HapteraError(
            "exists already", where=str(file), do="name another file", code=Code.FILE_UNWRITABLE
        )
    try:
        with TemporaryDirectory(dir=file.absolute().parent, prefix=f".{file.name}.") as folder:
            content, revision, beside = _copied(home, Path(folder) / STATE_FILE)
            files = {STATE_FILE: content, **beside}
            sums = {name: hashlib.sha256(one).hexdigest() for name, one in files.items()}
            told = Backup(FORMAT, haptera.__version__, revision, int(wall_s), sums)
            draft = Path(folder) / file.name
            _write(draft, {_TOLD: msgspec.json.encode(told), **files})
            draft.rename(file)
            sync(file.absolute().parent)
    except OSError as error:
        raise HapteraError(
            f"cannot be written: {error.strerror}",
            where=str(file),
            do="make its folder, free some space, or name another file",
            code=Code.FILE_UNWRITABLE,
        ) from error
    return told


def _copied(home: Path, copy: Path) -> tuple[bytes, int, Mapping[str, bytes]]:
    """The state file as it was at one moment, its revision, and the files beside it then.

    Raises:
        HapteraError: it is damaged, or the files beside it do not rest.
    """
    for _ in range(TRIES_MAX):
        before = read_beside(home)
        with (
            closing(sqlite3.connect(home / STATE_FILE, timeout=BUSY_S)) as state,
            closing(sqlite3.connect(copy)) as into,
        ):
            state.backup(into)
            revision = _checked(into, home / STATE_FILE)
        if digest_of(before) == digest_of(read_beside(home)):
            return copy.read_bytes(), revision, before
    raise HapteraError(
        "its files keep changing", where=str(home), do="try again later", code=Code.BUSY
    )


def _checked(copy: sqlite3.Connection, where: Path) -> int:
    """The revision of a copy that is sound."""
    revision = 0
    try:
        findings = copy.execute("PRAGMA integrity_check(1)").fetchall()
        findings += copy.execute("PRAGMA foreign_key_check").fetchall()
        (revision,) = copy.execute("SELECT revision FROM store").fetchone()
    except sqlite3.DatabaseError as error:
        findings = [(str(error),)]
    if findings != [("ok",)]:
        do = "keep the existing backups; check the disk"
        raise UnreadableError(f"is damaged: {findings[0][0]}", where=str(where), do=do)
    return int(revision)


def _write(file: Path, files: Mapping[str, bytes]) -> None:
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        with tarfile.open(fileobj=stream, mode="w|gz") as archive:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), 0o600
                archive.addfile(entry, io.BytesIO(content))
        stream.flush()
        os.fsync(stream.fileno())


class BackedUp(NamedTuple):
    """The content of a backup: desired state, and its cluster, if that is there."""

    made_s: int
    stored: Stored
    cluster: ClusterIdentity | None


def look_into(file: Path) -> BackedUp:
    """Read a backup, without making a parent of it.

    Raises:
        HapteraError: the backup is not sound, or of a later version.
    """
    told, files = _read(file)
    with TemporaryDirectory() as folder:
        # Of this user alone, as the state of a parent is.
        home = private_directory(Path(folder) / "state")
        for name in (STATE_FILE, FILE):
            if name in files:
                write_durable(home / name, files[name])
        try:
            with closing(open_database(home / STATE_FILE)) as connection:
                return BackedUp(told.made_s, load(connection), read_cluster(home))
        except (HapteraError, sqlite3.Error, ValueError, TypeError) as error:
            # Whoever made it has also made its digests: anything may be in its rows.
            what = f"holds no parent's state: {error}"
            raise UnreadableError(what, where=str(file), do="take another backup") from error


def restore(file: Path, directory: Path) -> Backup:
    """Make a parent's state of a backup, in a new epoch: followers of the old one begin anew.

    Raises:
        HapteraError: the backup is not sound, or a parent keeps its state there already.
    """
    told, files = _read(file)
    home = home_of(directory)
    if (home / STATE_FILE).exists():
        raise HapteraError(
            "there is a parent's state here already",
            where=str(home),
            do="move it away, or name --dir",
            code=Code.FILE_UNWRITABLE,
        )
    private_directory(private_directory(home.parent) / home.name)
    state = files.pop(STATE_FILE)
    replica = Replica.open(home / STATE_FILE)
    try:
        keep_beside(home, files)
        replica.take_whole(state, 0, 0)
        replica.promote()
    finally:
        replica.close()
    write_durable(home / PROMOTED, b"")
    return told


def _read(file: Path) -> tuple[Backup, dict[str, bytes]]:
    """A backup's words about itself, and its files, checked against these."""
    damaged = UnreadableError("is not a valid backup", where=str(file), do="take another backup")
    if file.exists() and not file.is_file():
        raise damaged  # to open a FIFO is to wait for who writes to it
    try:
        with tarfile.open(file, "r:gz") as archive:
            files = dict(_entries(archive))
        told = msgspec.json.decode(files.pop(_TOLD), type=Backup)
    except OSError as error:
        if error.errno is None:  # not of the system: what is in it cannot be unpacked
            raise damaged from error
        raise UnreadableError(
            f"cannot be read: {error.strerror}", where=str(file), do="see its path and rights"
        ) from error
    except (tarfile.TarError, zlib.error, EOFError, KeyError, ValueError) as error:
        raise damaged from error
    if told.format != FORMAT:
        what = f"is of format {told.format}, this haptera knows {FORMAT}"
        raise UnreadableError(what, where=str(file), do=f"restore it by haptera {told.haptera}")
    sums = {name: hashlib.sha256(one).hexdigest() for name, one in files.items()}
    if STATE_FILE not in files or told.sha256 != sums:
        raise damaged
    return told, files


def _entries(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    """The files in an archive.

    Raises:
        ValueError: one is no file, or all are too large: a few bytes unpack to any number.
    """
    left = _BYTES_MAX
    for entry in archive:
        left -= entry.size
        stream = archive.extractfile(entry) if entry.isreg() else None
        if stream is None or left < 0:
            raise ValueError(entry.name)
        yield entry.name, stream.read()
