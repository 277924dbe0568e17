"""Migrations of `state.db` from each released version to the next: text that never changes.

A later version gets a later entry. None refers to the tables as they are now, for these change.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MIGRATIONS: Final[Mapping[int, str]] = MappingProxyType(
    {
        1: """
ALTER TABLE intents ADD COLUMN disruptive INTEGER NOT NULL DEFAULT 0;
CREATE TABLE disruptions (
    intent TEXT PRIMARY KEY,
    entity TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    kernel_boot TEXT NOT NULL,
    at_s REAL NOT NULL
) WITHOUT ROWID;
""",
        2: """
ALTER TABLE history ADD COLUMN owner_before TEXT;
ALTER TABLE history ADD COLUMN written INTEGER;
CREATE TABLE writes (
    revision INTEGER PRIMARY KEY,
    at_s REAL NOT NULL,
    who TEXT NOT NULL,
    why TEXT
);
CREATE TABLE deeds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_s REAL NOT NULL,
    who TEXT NOT NULL,
    what TEXT NOT NULL
);
CREATE INDEX history_of_entity ON history (entity, id);
""",
        3: """
ALTER TABLE tokens ADD COLUMN made_s REAL NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN within TEXT;
""",
        4: """
CREATE TABLE keyed (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    who TEXT NOT NULL,
    key TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    at_s REAL NOT NULL,
    answer BLOB,
    UNIQUE (who, key)
);
""",
        5: """
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    job TEXT NOT NULL
);
CREATE TABLE duties (
    holder TEXT PRIMARY KEY,
    duty TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE queue (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    job_last INTEGER NOT NULL,
    token_last INTEGER NOT NULL
);
INSERT INTO queue VALUES (1, 0, 0);
""",
        6: """
CREATE TABLE links (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    revision INTEGER,
    deed INTEGER,
    sha256 BLOB NOT NULL
);
CREATE INDEX links_of_writes ON links (revision);
CREATE INDEX links_of_deeds ON links (deed);
CREATE TABLE anchor (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    link INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    revision INTEGER NOT NULL,
    deed INTEGER NOT NULL
);
INSERT INTO anchor SELECT 1, 0, zeroblob(32), revision,
    coalesce((SELECT max(id) FROM deeds), 0) FROM store;
""",
        7: """
ALTER TABLE deeds ADD COLUMN entity TEXT;
""",
        8: """
ALTER TABLE deeds ADD COLUMN request TEXT;
""",
        9: """
CREATE TABLE token_levels (
    id TEXT PRIMARY KEY REFERENCES enrolments ON DELETE CASCADE,
    level TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE session_levels (
    peer TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    incarnation INTEGER NOT NULL,
    level TEXT NOT NULL
) WITHOUT ROWID;
""",
        10: """
CREATE TABLE array_specs (
    array INTEGER PRIMARY KEY,
    spec TEXT NOT NULL
);
""",
    }
)
