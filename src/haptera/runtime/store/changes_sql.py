"""Changes as rows of `state.db`, and the rows that an engine starts from."""

import sqlite3
import uuid
from dataclasses import dataclass, field
from typing import Final, NamedTuple, assert_never

import msgspec

from haptera.model.changes import (
    Author,
    Change,
    CloseIntent,
    Declare,
    Desired,
    Disruption,
    OpenIntent,
    SetDesired,
    Stored,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.effects import Write
from haptera.model.entity import EntityId, check_name, node_id, parse_entity
from haptera.model.events import HandedDown
from haptera.model.intent import Intent
from haptera.runtime.store.audit_chain import (
    ChangesDigest,
    chain_deed,
    chain_write,
    forget_links,
)
from haptera.runtime.store.rows import Whole, read_row, read_rows
from haptera.runtime.store.sessions_sql import ASKED_FOR, BootToken, new_enrolment
from haptera.runtime.store.sqlite_writer import RefusalError, StaleError

# What is remembered of each: changes, writes, deeds. None of them for longer than this.
HISTORY_ROWS_MAX: Final = 100_000
HISTORY_KEPT_S: Final = 400 * 86_400
# What is too old goes a little with each write, so that none of them takes long.
FORGOTTEN_AT_ONCE: Final = 1_000
# Longer than any budget counts back, should the wall clock be set meanwhile.
DISRUPTIONS_KEPT_S: Final = 2 * 3_600

_REQUEST: Final = msgspec.json.Decoder(HandedDown)
_ATTRIBUTES: Final = msgspec.json.Decoder(dict[str, str])
_INTENTS: Final = (
    "SELECT id, entity, module, step, began_at, kernel_boot, enrols, disruptive"
    " FROM intents ORDER BY rowid"
)
# A value with its owner; None where there is nothing.
Owned = tuple[str | int, str] | None


@dataclass(frozen=True, slots=True)
class AppliedWrite:
    """A write that was done; `minted` holds the token of each intent that enrols."""

    revision: int
    minted: dict[str, BootToken] = field(repr=False)


def apply(connection: sqlite3.Connection, write: Write, wall_s: float) -> AppliedWrite:
    """Make the rows of a write, all or (raising `RefusalError`) none."""
    revision, desired_revision = connection.execute(
        "SELECT revision, desired_revision FROM store"
    ).fetchone()
    expected = write.if_revision
    if expected is not None and not desired_revision <= expected <= revision:
        raise StaleError(
            f"made for revision {expected}, but the desired state changed since, at"
            f" {desired_revision}; read it again"
        )
    written = revision + len(write.changes)
    turn = _Turn(connection, wall_s, revision, desired_revision, written)
    for change in write.changes:
        turn.apply(change)
    if turn.desired_revision != desired_revision:
        _note_write(turn, written, write.author, wall_s)
    connection.execute(
        "UPDATE store SET revision = ?, desired_revision = ?",
        (turn.revision, turn.desired_revision),
    )
    forget(connection, wall_s)
    return AppliedWrite(turn.revision, turn.minted)


def _note_write(turn: "_Turn", written: int, author: Author | None, wall_s: float) -> None:
    """Remember who wrote, and chain it with all that was changed."""
    connection = turn.connection
    if author is not None:
        connection.execute(
            "INSERT INTO writes VALUES (?, ?, ?, ?)", (written, wall_s, author.who, author.why)
        )
    if author is not None or turn.remembers:
        who, why = ("", None) if author is None else (author.who, author.why)
        chain_write(connection, written, who, why, turn.changes.hex)


def forget(connection: sqlite3.Connection, wall_s: float) -> None:
    """Keep the last changes, writes and deeds, and none that is too old."""
    forgotten = 0
    for table, key in (("history", "id"), ("writes", "revision"), ("deeds", "id")):
        forgotten += connection.execute(
            f"DELETE FROM {table} WHERE {key} <= (SELECT max({key}) FROM {table}) - ?",
            (HISTORY_ROWS_MAX,),
        ).rowcount
        forgotten += connection.execute(
            f"DELETE FROM {table} WHERE {key} < (SELECT min({key}) FROM {table}) + ? AND at_s < ?",
            (FORGOTTEN_AT_ONCE, wall_s - HISTORY_KEPT_S),
        ).rowcount
    if forgotten:
        forget_links(connection)


def note(
    connection: sqlite3.Connection,
    *,
    who: str,
    what: str,
    entity: EntityId | None,
    request: HandedDown | None,
    wall_s: float,
) -> None:
    """Remember what somebody asked for that changes nothing of what is desired."""
    about = None if entity is None else str(entity)
    asked = None if request is None else msgspec.json.encode(request).decode()
    row = wall_s, who, what, about, asked
    done = connection.execute(
        "INSERT INTO deeds (at_s, who, what, entity, request) VALUES (?, ?, ?, ?, ?)", row
    )
    assert done.lastrowid is not None
    chain_deed(connection, done.lastrowid, row)
    forget(connection, wall_s)


def requests(
    connection: sqlite3.Connection, *, wall_s: float, within_s: float
) -> list[tuple[HandedDown, float]]:
    """What people asked for lately, in their order, and how many seconds ago.

    What is of the future, by a clock that was set back, may be of any age.
    """
    found = read_rows(
        connection,
        "deeds",
        "SELECT id, request, at_s FROM deeds WHERE request IS NOT NULL"
        " AND at_s BETWEEN ?1 - ?2 AND ?1 + ?2 ORDER BY id",
        tuple[int, str, float],
        lambda row: (_REQUEST.decode(row[1]), max(0.0, wall_s - row[2])),
        (wall_s, within_s),
    )
    return [*found]


class _Turn:
    """One write under way: each of its changes has the next revision."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        wall_s: float,
        revision: int,
        desired_revision: int,
        written: int,
    ) -> None:
        self.connection = connection
        self._sql = connection.execute
        self._wall_s = wall_s
        self._written = written
        self.revision = revision
        self.desired_revision = desired_revision
        self.minted: dict[str, BootToken] = {}
        self.changes = ChangesDigest()
        self.remembers = False

    def apply(self, change: Change) -> None:
        self.revision += 1
        match change:
            case OpenIntent(intent):
                self._open(intent)
                if intent.enrols:
                    self.minted[intent.id] = self._mint(change)
                return
            case CloseIntent(intent_id, begun):
                self._sql("DELETE FROM intents WHERE id = ?", (intent_id,))
                if not begun:
                    self._sql("DELETE FROM disruptions WHERE intent = ?", (intent_id,))
                return
            case Declare():
                self._declare(change)
            case Undeclare(entity):
                self._undeclare(str(entity))
            case SetDesired():
                self._set(change)
            case UnsetDesired(entity, name):
                self._unset(str(entity), name)
            case _:
                assert_never(change)
        self.desired_revision = self.revision

    def _declare(self, change: Declare) -> None:
        key = str(change.entity)
        if parse_entity(key) != change.entity:
            raise RefusalError(f"{key} is not how {change.entity!r} is written")
        if change.entity == node_id(change.entity.name):
            self._sql(
                "INSERT OR IGNORE INTO nodes VALUES (?, ?, 0)",
                (change.entity.name, str(uuid.uuid4())),
            )
        attributes = msgspec.json.encode(change.attributes, order="sorted").decode()
        before = self._sql("SELECT attributes, owner FROM entities WHERE id = ?", (key,)).fetchone()
        self._sql(
            "INSERT INTO entities VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE"
            " SET attributes = ?2, owner = ?3, revision = ?4",
            (key, attributes, change.owner, self.revision),
        )
        self._remember(key, None, before, (attributes, change.owner))

    def _undeclare(self, key: str) -> None:
        for name, value, owner in self._sql(
            "SELECT name, value, owner FROM desired WHERE entity = ?", (key,)
        ).fetchall():
            self._remember(key, name, (value, owner), None)
        row = self._sql(
            "DELETE FROM entities WHERE id = ? RETURNING attributes, owner", (key,)
        ).fetchone()
        if row is not None:
            self._remember(key, None, row, None)

    def _set(self, change: SetDesired) -> None:
        key = str(change.entity)
        if not self._touch(key):
            raise RefusalError(f"{key} is not declared")
        before = self._value(key, change.name)
        self._sql(
            "INSERT OR REPLACE INTO desired VALUES (?, ?, ?, ?, ?, ?)",
            (key, change.name, change.value, change.owner, self._wall_s, self.revision),
        )
        self._remember(key, change.name, before, (change.value, change.owner))

    def _unset(self, key: str, name: str) -> None:
        if (before := self._value(key, name)) is not None:
            self._sql("DELETE FROM desired WHERE entity = ? AND name = ?", (key, name))
            self._remember(key, name, before, None)
        self._touch(key)

    def _open(self, intent: Intent) -> None:
        if self._sql("SELECT 1 FROM intents WHERE id = ?", (intent.id,)).fetchone():
            raise RefusalError(f"intent {intent.id} is open already")
        self._sql(
            "INSERT INTO intents VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                intent.id,
                str(intent.entity),
                intent.module,
                intent.step,
                intent.began_at,
                intent.kernel_boot,
                intent.enrols,
                intent.disruptive,
            ),
        )
        if intent.disruptive:
            self._note_disruption(intent)

    def _note_disruption(self, intent: Intent) -> None:
        self._sql("DELETE FROM disruptions WHERE at_s < ?", (self._wall_s - DISRUPTIONS_KEPT_S,))
        self._sql(
            "INSERT INTO disruptions VALUES (?, ?, ?, ?, ?)",
            (intent.id, str(intent.entity), intent.began_at, intent.kernel_boot, self._wall_s),
        )

    def _mint(self, opened: OpenIntent) -> BootToken:
        intent, good_for_s = opened.intent, opened.good_for_ms / 1_000
        node = intent.entity.node
        if node is None:
            raise RefusalError(f"intent {intent.id}: {intent.entity} is on no node")
        made = new_enrolment(self.connection, node, intent.id, good_for_s, self._wall_s)
        if opened.level is not None:
            self._sql("INSERT INTO token_levels VALUES (?, ?)", (made.token.id, opened.level))
        return made

    def _value(self, key: str, name: str) -> Owned:
        row: Owned = self._sql(
            "SELECT value, owner FROM desired WHERE entity = ? AND name = ?", (key, name)
        ).fetchone()
        return row

    def _touch(self, key: str) -> bool:
        """Number the entity's last change; False where there is no such entity."""
        done = self._sql("UPDATE entities SET revision = ? WHERE id = ?", (self.revision, key))
        return done.rowcount == 1

    def _remember(self, key: str, name: str | None, before: Owned, after: Owned) -> None:
        """Note a change; before and after are values with their owners."""
        if before == after:
            return
        value_before, owner_before = before or (None, None)
        value, owner = after or (None, owner_before)
        changed = self.revision, self._wall_s, key, name, owner
        row = *changed, value_before, value, owner_before
        self._sql(
            "INSERT INTO history"
            " (revision, at_s, entity, name, owner, before, after, owner_before, written)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, self._written),
        )
        self.changes.add(row)
        self.remembers = True


def load(connection: sqlite3.Connection) -> Stored:
    """All rows as values, in the order of their names; intents in the order they were opened."""
    store = "SELECT epoch, revision FROM store"
    epoch, revision = read_row(connection, "store", store, tuple[Whole, Whole])
    nodes = "SELECT name, incarnation, uuid FROM nodes ORDER BY name"
    made = read_rows(connection, "nodes", nodes, tuple[str, Whole, uuid.UUID], _counted)
    return Stored(
        epoch,
        revision,
        _entities(connection),
        _intents(connection),
        {name: incarnation for name, incarnation in made if incarnation > 0},
        _disruptions(connection),
        _enrolled(connection),
    )


def _counted(row: tuple[str, int, uuid.UUID]) -> tuple[str, int]:
    return check_name(row[0]), row[1]


def _entities(connection: sqlite3.Connection) -> list[StoredEntity]:
    desired: dict[str, dict[str, Desired]] = {}
    for key, name, value, owner in read_rows(
        connection,
        "desired",
        "SELECT entity, name, value, owner FROM desired ORDER BY entity, name",
        tuple[str, str, str | int, str],
        lambda row: row,
    ):
        desired.setdefault(key, {})[name] = Desired(value, owner)
    rows = read_rows(
        connection,
        "entities",
        "SELECT id, attributes, owner, revision FROM entities ORDER BY id",
        tuple[str, str, str, int],
        lambda row: (parse_entity(row[0]), _ATTRIBUTES.decode(row[1]), *row),
    )
    return [
        StoredEntity(entity, attributes, owner, desired.get(key, {}), revision)
        for entity, attributes, key, _, owner, revision in rows
    ]


def _intents(connection: sqlite3.Connection) -> list[Intent]:
    return [*read_rows(connection, "intents", _INTENTS, _IntentRow, _intent)]


class _IntentRow(NamedTuple):
    id: str
    entity: str
    module: str
    step: str
    began_at: int
    kernel_boot: str
    enrols: int
    disruptive: int


def _intent(row: _IntentRow) -> Intent:
    key, entity, module, step, at, boot, enrols, disruptive = row
    return Intent(key, parse_entity(entity), module, step, at, boot, bool(enrols), bool(disruptive))


def _disruptions(connection: sqlite3.Connection) -> list[Disruption]:
    made = read_rows(
        connection,
        "disruptions",
        "SELECT intent, entity, began_at, kernel_boot FROM disruptions ORDER BY at_s, intent",
        tuple[str, str, int, str],
        lambda row: Disruption(parse_entity(row[1]), *row[2:]),
    )
    return [*made]


def _enrolled(connection: sqlite3.Connection) -> list[str]:
    """The nodes with a session that no later token is meant to follow: nobody has claimed one."""
    rows = connection.execute(
        "SELECT s.peer FROM sessions s WHERE NOT EXISTS ("
        " SELECT 1 FROM enrolments t WHERE t.node = s.peer AND t.claimed_by IS NULL"
        " AND t.intent != ?"
        " AND t.expires_s >= coalesce((SELECT c.expires_s FROM enrolments c"
        " WHERE c.node = s.peer AND c.incarnation = s.incarnation), 0))"
        " ORDER BY s.peer",
        (ASKED_FOR,),
    )
    return [name for (name,) in rows]
