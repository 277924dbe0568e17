"""The tables of `state.db`, and how the file is made, checked and opened."""

import os
import secrets
import sqlite3
from pathlib import Path
from typing import Final

from haptera.model.errors import Code, HapteraError
from haptera.runtime.identity.private import sync
from haptera.runtime.store.audit_chain import AUDIT, NO_LINKS
from haptera.runtime.store.jobs_sql import JOBS
from haptera.runtime.store.journaled import JournaledConnection
from haptera.runtime.store.migrations_sql import MIGRATIONS

VERSION: Final = 11
# "hapt": tells our files from other SQLite files.
APPLICATION: Final = 0x68617074
BUSY_S: Final = 5.0
EPOCH_BITS: Final = 32
# Views, triggers and virtual tables have no pages of their own. We make none of them, and they
# would run whatever who made the file likes.
_FOREIGN: Final = "SELECT name FROM sqlite_master WHERE coalesce(rootpage, 0) = 0"

_TABLES: Final = """
CREATE TABLE store (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    desired_revision INTEGER NOT NULL  -- the last that changed what is desired
);
CREATE TABLE nodes (  -- never deleted from: a name keeps its UUID, and incarnations only grow
    name TEXT PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    incarnation INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE entities (
    id TEXT PRIMARY KEY,
    attributes TEXT NOT NULL,
    owner TEXT NOT NULL,
    revision INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE desired (
    entity TEXT NOT NULL REFERENCES entities ON DELETE CASCADE,
    name TEXT NOT NULL,
    value NOT NULL,
    owner TEXT NOT NULL,
    set_at_s REAL NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (entity, name)
) WITHOUT ROWID;
CREATE TABLE history (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    revision INTEGER NOT NULL,
    at_s REAL NOT NULL,
    entity TEXT NOT NULL,
    name TEXT,  -- NULL: the entity itself, with its attributes as values
    owner TEXT NOT NULL,  -- of what is after, or, where that is nothing, of what was before
    before,
    after,
    owner_before TEXT,
    written INTEGER  -- the last revision of the write
);
CREATE TABLE intents (
    id TEXT PRIMARY KEY,
    entity TEXT NOT NULL,
    module TEXT NOT NULL,
    step TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    kernel_boot TEXT NOT NULL,
    enrols INTEGER NOT NULL,
    disruptive INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE enrolments (
    id TEXT PRIMARY KEY,
    sha256 BLOB NOT NULL,
    node TEXT NOT NULL REFERENCES nodes,
    intent TEXT NOT NULL,
    expires_s REAL NOT NULL,
    claimed_by BLOB,
    incarnation INTEGER  -- the one that was made for the claim
) WITHOUT ROWID;
CREATE TABLE sessions (
    peer TEXT PRIMARY KEY REFERENCES nodes,
    secret BLOB NOT NULL,
    cluster TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    parent_index INTEGER NOT NULL UNIQUE,
    child_index INTEGER NOT NULL,
    suite INTEGER NOT NULL,
    host TEXT NOT NULL,
    port INTEGER NOT NULL,
    peer_boot BLOB  -- 8 bytes, for an INTEGER is signed
) WITHOUT ROWID;
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    scope TEXT NOT NULL,
    expires_s REAL NOT NULL,
    made_s REAL NOT NULL DEFAULT 0,
    within TEXT  -- the selector that it is limited to; NULL: it is not
) WITHOUT ROWID;
CREATE TABLE disruptions (  -- of the last hour, for the budgets
    intent TEXT PRIMARY KEY,
    entity TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    kernel_boot TEXT NOT NULL,
    at_s REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE writes (  -- who wrote what is in the history, and why
    revision INTEGER PRIMARY KEY,  -- the last of the write
    at_s REAL NOT NULL,
    who TEXT NOT NULL,
    why TEXT
);
CREATE TABLE deeds (  -- what else was asked for that changes how the cluster is kept
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_s REAL NOT NULL,
    who TEXT NOT NULL,
    what TEXT NOT NULL,
    entity TEXT,  -- that it is about; NULL: the whole cluster, or written before version 8
    request TEXT  -- that has to reach the parent that keeps the node; NULL: it is none
);
CREATE INDEX history_of_entity ON history (entity, id);
"""
# Tables of their own, for who follows a parent of a version before 10 writes its rows as they are.
LEVELS: Final = """
CREATE TABLE token_levels (  -- how a token reaches its node; of one without a row it is not known
    id TEXT PRIMARY KEY REFERENCES enrolments ON DELETE CASCADE,
    level TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE session_levels (  -- that of the token with which this incarnation came
    peer TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    incarnation INTEGER NOT NULL,
    level TEXT NOT NULL
) WITHOUT ROWID;
"""
KEYED: Final = """
CREATE TABLE keyed (  -- requests with an idempotency key, of the last day
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    who TEXT NOT NULL,
    key TEXT NOT NULL,
    sha256 BLOB NOT NULL,  -- of the whole request
    at_s REAL NOT NULL,
    answer BLOB,  -- NULL: it is not known
    UNIQUE (who, key)
);
"""


def open_database(path: Path, *, pages_max: int | None = None) -> JournaledConnection:
    """Open the file, made first where there is none.

    `pages_max` limits the file's size, as a full disk would.

    Raises:
        HapteraError: the file cannot be used; it is left as it was.
    """
    try:
        if not path.exists():
            _make(path)
        return _open(path, pages_max)
    except (OSError, sqlite3.Error) as error:
        raise HapteraError(
            f"cannot be opened: {error}",
            where=str(path),
            do="check the disk, then start again",
            code=Code.STORAGE_UNREADABLE,
        ) from error


def _make(path: Path) -> None:
    """Make the file beside its place and rename it, so that it is there whole or not at all."""
    if (wal := path.with_name(path.name + "-wal")).exists():
        raise HapteraError(
            f"is missing, but {wal.name} is there",
            where=str(path),
            do="restore both from a backup, or move the rest away to start anew",
            code=Code.STORAGE_UNREADABLE,
        )
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        tables = _TABLES + LEVELS + KEYED + JOBS + AUDIT
        connection.executescript("PRAGMA synchronous = FULL; BEGIN;" + tables)
        epoch = secrets.randbits(EPOCH_BITS)
        connection.execute("INSERT INTO store VALUES (1, ?, 0, 0)", (epoch,))
        connection.execute(NO_LINKS)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    finally:
        connection.close()
    draft.rename(path)
    sync(path.parent)


def _open(path: Path, pages_max: int | None) -> JournaledConnection:
    connection = sqlite3.connect(
        path,
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
        factory=JournaledConnection,
    )
    try:
        _check(connection, path)
        path.chmod(0o600)
        _migrate(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # What was a secret before it was sealed, or of a session that ended, stays nowhere.
        connection.execute("PRAGMA secure_delete = ON")
        if pages_max is not None:
            connection.execute(f"PRAGMA max_page_count = {pages_max:d}")
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring an older file to this version, step by step, each step whole or not at all."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for step in range(version, VERSION):
        connection.executescript(
            f"BEGIN IMMEDIATE; {MIGRATIONS[step]} PRAGMA user_version = {step + 1}; COMMIT;"
        )


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is damaged, another's, or from the future; nothing is written before."""
    damaged = HapteraError(
        "is damaged, or no database; nothing was changed",
        where=str(path),
        do="restore it from a backup, or move it away to start anew",
        code=Code.STORAGE_UNREADABLE,
    )
    if path.stat().st_size == 0:
        raise damaged
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        foreign = connection.execute(_FOREIGN).fetchone()
        findings = [] if foreign else connection.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise  # the disk's or a lock's fault, not the file's
        raise damaged from error
    if application != APPLICATION:
        raise HapteraError(
            "is not a haptera state file",
            where=str(path),
            do="give another directory",
            code=Code.STORAGE_UNREADABLE,
        )
    if version > VERSION:
        raise HapteraError(
            f"is of version {version}, this haptera knows up to {VERSION}; nothing was changed",
            where=str(path),
            do="start the newer haptera, or restore a backup from before the upgrade",
            code=Code.VERSION_MISMATCH,
        )
    if findings != [("ok",)] or version < min(MIGRATIONS):
        raise damaged
