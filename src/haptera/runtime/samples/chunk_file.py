"""One SQLite file of chunks, by time and entity: it never outgrows its bound, and may be lost."""

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

# The file is of this form; one of another is set aside.
FORM: Final = 1
# Keys are made of a place in time, above, and the number of an entity.
ENTITY_BITS: Final = 24
PAGE_BYTES: Final = 4_096
# Room is made where so much of a file's bound is used: in whole places, the oldest first.
FULL_SHARE: Final = 0.9
BROKEN: Final = ".broken"

_TABLES: Final = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA journal_size_limit = 16777216;
PRAGMA user_version = {FORM};
CREATE TABLE IF NOT EXISTS entities (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS chunks (key INTEGER PRIMARY KEY, content BLOB NOT NULL);
"""
# Two chunks of one place are joined: from two processes, or after a clock was set back.
_PUT: Final = """
INSERT INTO chunks (key, content) VALUES (?, ?)
ON CONFLICT (key) DO UPDATE SET content = CAST(content || excluded.content AS BLOB)
"""


class ChunkFile:
    """Chunks of entities, each at a place in time: the n-th so many seconds since 1970.

    All of it is used from one thread; `read_only` from any.

    Raises:
        sqlite3.Error: it cannot be opened.
    """

    def __init__(self, path: Path, bytes_max: int) -> None:
        self._path = path
        self._pages_max = max(64, bytes_max // PAGE_BYTES)
        self._ids: dict[str, int] = {}
        self._file = sqlite3.connect(path, check_same_thread=False)
        try:
            self._begin()
        except sqlite3.Error:
            self._file.close()
            raise

    def close(self) -> None:
        self._file.close()

    def put(self, place: int, chunks: Iterable[tuple[str, bytes]]) -> None:
        """Add these chunks of entities, all or none.

        Raises:
            sqlite3.Error: they were not written.
        """
        some = list(chunks)
        self.make_room(sum(len(chunk) for _, chunk in some))
        try:
            with self._file:
                rows = [(place << ENTITY_BITS | self._id(name), chunk) for name, chunk in some]
                self._file.executemany(_PUT, rows)
        except sqlite3.Error:
            self._ids.clear()  # Those that were given in vain are given again.
            raise

    def make_room(self, bytes_more: int = 0) -> None:
        """Drop the oldest places until there is room for so many bytes."""
        most = self._pages_max * FULL_SHARE - bytes_more / PAGE_BYTES
        while self._pages() > most and (first := self.first()) is not None:
            self.drop_before(first + 1)

    def drop_before(self, place: int) -> None:
        """Drop the chunks of all places before this one."""
        with self._file:
            self._file.execute("DELETE FROM chunks WHERE key < ?", (place << ENTITY_BITS,))

    def first(self) -> int | None:
        """The oldest place with chunks."""
        return self._place("SELECT min(key) FROM chunks")

    def last(self) -> int | None:
        """The newest place with chunks."""
        return self._place("SELECT max(key) FROM chunks")

    def next_from(self, place: int) -> int | None:
        """The first place with chunks, from this one on."""
        return self._place("SELECT min(key) FROM chunks WHERE key >= ?", place << ENTITY_BITS)

    def entities(self, since: int, until: int) -> list[str]:
        """The names of entities with chunks from a place until before another, in order."""
        found = self._file.execute(
            "SELECT name FROM entities WHERE id IN"
            f" (SELECT DISTINCT key & {(1 << ENTITY_BITS) - 1} FROM chunks"
            " WHERE key >= ? AND key < ?) ORDER BY name",
            (since << ENTITY_BITS, until << ENTITY_BITS),
        )
        return [name for (name,) in found]

    def get(self, name: str, places: Iterable[int]) -> list[bytes]:
        """The chunks of an entity at these places, as far as there are some."""
        return list(_chunks(self._file, name, places))

    @staticmethod
    def read_only(path: Path, name: str, since: int, until: int) -> tuple[int | None, list[bytes]]:
        """The oldest place of all, and the chunks of an entity from a place to another.

        Raises:
            sqlite3.Error: they cannot be read.
        """
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
            first, last = file.execute("SELECT min(key), max(key) FROM chunks").fetchone()
            if first is None:
                return None, []
            oldest, newest = first >> ENTITY_BITS, last >> ENTITY_BITS
            places = range(max(since, oldest), min(until, newest) + 1)
            return oldest, list(_chunks(file, name, places))

    def bytes_used(self) -> int:
        """The size of the used pages of the file."""
        return self._pages() * PAGE_BYTES

    def _begin(self) -> None:
        (form,) = self._file.execute("PRAGMA user_version").fetchone()
        if form not in (0, FORM):
            raise sqlite3.DatabaseError(f"it is of form {form}")
        self._file.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        self._file.executescript(_TABLES)
        self._file.execute(f"PRAGMA max_page_count = {self._pages_max}")
        self._path.chmod(0o600)

    def _pages(self) -> int:
        (pages,) = self._file.execute("PRAGMA page_count").fetchone()
        (free,) = self._file.execute("PRAGMA freelist_count").fetchone()
        return int(pages) - int(free)

    def _place(self, query: str, *values: int) -> int | None:
        (key,) = self._file.execute(query, values).fetchone()
        return None if key is None else key >> ENTITY_BITS

    def _id(self, name: str) -> int:
        if name not in self._ids:
            self._file.execute("INSERT OR IGNORE INTO entities (name) VALUES (?)", (name,))
            found = self._file.execute("SELECT id FROM entities WHERE name = ?", (name,))
            self._ids[name] = found.fetchone()[0]
        return self._ids[name]


def set_aside(path: Path) -> Path:
    """Keep a file that cannot be read under another name, in place of an earlier one."""
    broken = path.with_name(path.name + BROKEN)
    with contextlib.suppress(FileNotFoundError):
        path.replace(broken)
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    return broken


def _chunks(file: sqlite3.Connection, name: str, places: Iterable[int]) -> Iterator[bytes]:
    found = file.execute("SELECT id FROM entities WHERE name = ?", (name,)).fetchone()
    for place in places if found is not None else ():
        key = place << ENTITY_BITS | found[0]
        for (content,) in file.execute("SELECT content FROM chunks WHERE key = ?", (key,)):
            yield content
