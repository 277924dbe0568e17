"""The chain of hashes over who wrote what: an altered, missing or added row is found.

Each link's hash is over the one before and over what it stands for: a write with all that it
changed, or a deed. A writer of the file can make a whole chain anew: that is found only by
who noted the hash of a link elsewhere. After Schneier and Kelsey, "Secure audit logs", 1999.
"""

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.runtime.store.history_sql import reading

AUDIT: Final = """
CREATE TABLE links (  -- of the chain: each stands for a write, by its revision, or for a deed
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    revision INTEGER,
    deed INTEGER,
    sha256 BLOB NOT NULL
);
CREATE INDEX links_of_writes ON links (revision);
CREATE INDEX links_of_deeds ON links (deed);
CREATE TABLE anchor (  -- the last link that was forgotten, and what is older than the chain
    one INTEGER PRIMARY KEY CHECK (one = 1),
    link INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    revision INTEGER NOT NULL,
    deed INTEGER NOT NULL
);
"""
NO_LINKS: Final = "INSERT INTO anchor VALUES (1, 0, zeroblob(32), 0, 0)"
# What of a row of `history` counts, in this order.
_CHANGED: Final = (
    "revision, at_s, entity, name, owner, before, after, owner_before FROM history"
    " WHERE written IS NOT NULL"
)

Row = Sequence[str | int | float | None]


class ChangesDigest:
    """Of all that one write changes, row by row as the history has it."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, row: Row) -> None:
        """The next row, in the order of the history."""
        self._hash.update(_packed(row))

    @property
    def hex(self) -> str:
        return self._hash.hexdigest()


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of it: `head` is the last link and its hash, `findings` what does not fit."""

    links: int
    forgotten: int
    head: tuple[int, str]
    findings: tuple[str, ...]


def chain_write(
    connection: sqlite3.Connection, revision: int, who: str, why: str | None, changes: str
) -> None:
    """Add a write, whose changes have this digest."""
    _chain(connection, revision, None, (revision, who, why, changes))


def chain_deed(connection: sqlite3.Connection, deed: int, row: Row) -> None:
    """Add a deed: when, who, what, which entity it is about, and the request, if any."""
    _chain(connection, None, deed, _trimmed((deed, *row)))


def _trimmed(row: Row) -> Row:
    """Without what is empty at its end: a column that came later changes no older link."""
    return row if row[-1] is not None else _trimmed(row[:-1])


def _chain(
    connection: sqlite3.Connection, revision: int | None, deed: int | None, row: Row
) -> None:
    last = connection.execute("SELECT sha256 FROM links ORDER BY id DESC LIMIT 1").fetchone()
    if last is None:
        last = connection.execute("SELECT sha256 FROM anchor").fetchone()
    connection.execute(
        "INSERT INTO links (revision, deed, sha256) VALUES (?, ?, ?)",
        (revision, deed, _linked(last[0], row)),
    )


def forget_links(connection: sqlite3.Connection) -> None:
    """Begin the chain after the last link that has lost a part by its age."""
    stale = connection.execute(
        "SELECT max("
        " coalesce((SELECT max(id) FROM links WHERE revision <="
        "  (SELECT written FROM history WHERE id > 1 ORDER BY id LIMIT 1)), 0),"
        " coalesce((SELECT max(id) FROM links WHERE revision <"
        "  (SELECT min(revision) FROM writes)), 0),"
        " coalesce((SELECT max(id) FROM links WHERE deed < (SELECT min(id) FROM deeds)), 0))"
    ).fetchone()[0]
    if stale == 0:
        return
    connection.execute(
        "UPDATE anchor SET link = ?1, sha256 = (SELECT sha256 FROM links WHERE id = ?1),"
        " revision = max(revision,"
        "  coalesce((SELECT max(revision) FROM links WHERE id <= ?1), 0)),"
        " deed = max(deed, coalesce((SELECT max(deed) FROM links WHERE id <= ?1), 0))",
        (stale,),
    )
    connection.execute("DELETE FROM links WHERE id <= ?", (stale,))


def verify(path: Path, noted: str | None = None) -> Verified:
    """Compare the whole chain with what it stands for; a `noted` hash must be of one of its links.

    Raises:
        StorageError: the file cannot be read.
    """
    with reading(path) as connection:
        connection.execute("BEGIN")  # all of one moment, though a parent may be writing
        anchor = connection.execute("SELECT link, sha256, revision, deed FROM anchor").fetchone()
        links = connection.execute("SELECT id, revision, deed, sha256 FROM links ORDER BY id")
        told = links.fetchall()
        findings = list(_broken(anchor, told, _contents(connection)))
        findings += _beyond(connection, anchor, told)
    hashes = {one[3].hex() for one in told} | {anchor[1].hex()}
    if noted is not None and noted.lower() not in hashes:
        findings.append(f"no link has the hash {noted}: this is another chain, or a part of it")
    last, sha256 = (told[-1][0], told[-1][3]) if told else anchor[:2]
    return Verified(len(told), anchor[0], (last, sha256.hex()), tuple(findings))


def _broken(
    anchor: tuple[int, bytes, int, int],
    links: list[tuple[int, int | None, int | None, bytes]],
    contents: dict[str, Row],
) -> Iterator[str]:
    """Where the chain is cut, or does not fit what is there."""
    at, before = anchor[:2]
    for link, revision, deed, sha256 in links:
        name = f"the write of revision {revision}" if deed is None else f"deed {deed}"
        row = contents.pop(name, None)
        if link != at + 1:
            yield f"links {at + 1} to {link - 1} are missing"
        elif row is None:
            yield f"{name} is missing, of link {link}"
        elif _linked(before, row) != sha256:
            yield f"{name} was altered, or link {link} or the one before"
        at, before = link, sha256
    for name in sorted(contents):
        yield f"{name} is in no link"


def _contents(connection: sqlite3.Connection) -> dict[str, Row]:
    """What the links stand for, as far as it is there and not older than the chain."""
    digests: dict[int, ChangesDigest] = {}
    for written, *row in connection.execute(f"SELECT written, {_CHANGED} ORDER BY id"):
        digests.setdefault(written, ChangesDigest()).add(row)
    writers = {
        revision: (who, why)
        for revision, who, why in connection.execute("SELECT revision, who, why FROM writes")
    }
    (oldest,) = connection.execute("SELECT revision FROM anchor").fetchone()
    found: dict[str, Row] = {
        f"the write of revision {one}": (
            one,
            *writers.get(one, ("", None)),
            digests.get(one, ChangesDigest()).hex,
        )
        for one in digests.keys() | writers.keys()
        if one > oldest
    }
    deeds = connection.execute(
        "SELECT id, at_s, who, what, entity, request FROM deeds"
        " WHERE id > (SELECT deed FROM anchor)"
    )
    return found | {f"deed {row[0]}": _trimmed(row) for row in deeds}


def _beyond(
    connection: sqlite3.Connection, anchor: tuple[int, bytes, int, int], links: list[Any]
) -> list[str]:
    """Links that were there after the last one: SQLite counts what was ever inserted."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'links'").fetchone()
    ever, last = (0 if row is None else row[0]), (links[-1][0] if links else anchor[0])
    return [f"links {last + 1} to {ever} are missing"] if ever > last else []


def _linked(before: bytes, row: Row) -> bytes:
    return hashlib.sha256(before + _packed(row)).digest()


def _packed(row: Row) -> bytes:
    return msgspec.json.encode(row) + b"\n"
