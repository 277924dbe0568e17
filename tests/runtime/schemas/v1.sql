-- A state.db of version 1, with a row of most sorts.
CREATE TABLE store (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    desired_revision INTEGER NOT NULL
);
CREATE TABLE nodes (
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
    name TEXT,
    owner TEXT NOT NULL,
    before,
    after
);
CREATE TABLE intents (
    id TEXT PRIMARY KEY,
    entity TEXT NOT NULL,
    module TEXT NOT NULL,
    step TEXT NOT NULL,
    began_at INTEGER NOT NULL,
    kernel_boot TEXT NOT NULL,
    enrols INTEGER NOT NULL
);
CREATE TABLE enrolments (
    id TEXT PRIMARY KEY,
    sha256 BLOB NOT NULL,
    node TEXT NOT NULL REFERENCES nodes,
    intent TEXT NOT NULL,
    expires_s REAL NOT NULL,
    claimed_by BLOB,
    incarnation INTEGER
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
    peer_boot BLOB
) WITHOUT ROWID;
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    scope TEXT NOT NULL,
    expires_s REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO store VALUES (1, 77, 9, 8);
INSERT INTO nodes VALUES ('n01', '00000000-0000-0000-0000-000000000001', 3);
INSERT INTO entities VALUES ('node:n01', '{"rack": "1"}', 'site', 7);
INSERT INTO desired VALUES ('node:n01', 'power', 'on', 'user:eve', 5.0, 8);
INSERT INTO history VALUES (1, 8, 5.0, 'node:n01', 'power', 'user:eve', NULL, 'on');
INSERT INTO intents VALUES ('i1', 'node:n01', 'labnode', 'switch_on', 5, 'boot', 1);
INSERT INTO tokens VALUES ('t1', 'eve', x'00', 'write', 9e9);
PRAGMA application_id = 1751216244;
PRAGMA user_version = 1;
