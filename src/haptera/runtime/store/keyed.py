"""Requests that brought an idempotency key, and how they were answered: rows of `state.db`."""

import sqlite3
import zlib
from dataclasses import dataclass
from typing import Final

import msgspec

# A longer answer, once packed, is not kept: that there was one still is.
ANSWER_BYTES_MAX: Final = 131_072
_UNPACKED_BYTES_MAX: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A key, and whose it is: two principals may well use the same."""

    who: str
    key: str


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """How long a key is kept, after which it is a new one; how many there are.

    The oldest make room: of one principal's keys, and of all.
    """

    kept_s: float = 86_400.0
    each_max: int = 1_000
    all_max: int = 4_096


KEY_LIMITS: Final = KeyLimits()


class KeptAnswer(msgspec.Struct, frozen=True, gc=False):
    """An answer as it is given again; without a body, it was too long to be kept."""

    status: int
    headers: dict[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of a key: the digest of its request, and its answer.

    Without an answer, that request began and it is not known what came of it.
    """

    sha256: bytes
    answer: KeptAnswer | None


def begin(
    connection: sqlite3.Connection,
    key: RequestKey,
    sha256: bytes,
    wall_s: float,
    limits: KeyLimits = KEY_LIMITS,
) -> Held | None:
    """Keep a key from now on, and None; or what is known of it already."""
    connection.execute("DELETE FROM keyed WHERE at_s < ?", (wall_s - limits.kept_s,))
    row = connection.execute(
        "SELECT sha256, answer FROM keyed WHERE who = ? AND key = ?", (key.who, key.key)
    ).fetchone()
    if row is not None:
        return Held(row[0], None if row[1] is None else _unpacked(row[1]))
    _make_room(connection, "who = ?", (key.who,), limits.each_max)
    _make_room(connection, "TRUE", (), limits.all_max)
    connection.execute(
        "INSERT INTO keyed (who, key, sha256, at_s) VALUES (?, ?, ?, ?)",
        (key.who, key.key, sha256, wall_s),
    )
    return None


def finish(connection: sqlite3.Connection, key: RequestKey, answer: KeptAnswer) -> None:
    """Keep what the request was answered."""
    connection.execute(
        "UPDATE keyed SET answer = ? WHERE who = ? AND key = ?",
        (_packed(answer), key.who, key.key),
    )


def forget(connection: sqlite3.Connection, key: RequestKey) -> None:
    """Nothing came of the request: it may be made anew."""
    connection.execute("DELETE FROM keyed WHERE who = ? AND key = ?", (key.who, key.key))


def _make_room(
    connection: sqlite3.Connection, whose: str, values: tuple[str, ...], count_max: int
) -> None:
    """See that one more fits among these; the oldest go."""
    connection.execute(
        f"DELETE FROM keyed WHERE id IN (SELECT id FROM keyed WHERE {whose}"
        f" ORDER BY id DESC LIMIT -1 OFFSET {count_max - 1:d})",
        values,
    )


def _packed(answer: KeptAnswer) -> bytes:
    packed = zlib.compress(msgspec.msgpack.encode(answer))
    if len(packed) <= ANSWER_BYTES_MAX:
        return packed
    return zlib.compress(msgspec.msgpack.encode(msgspec.structs.replace(answer, body=None)))


def _unpacked(packed: bytes) -> KeptAnswer:
    text = zlib.decompressobj().decompress(packed, _UNPACKED_BYTES_MAX)
    return msgspec.msgpack.decode(text, type=KeptAnswer)
