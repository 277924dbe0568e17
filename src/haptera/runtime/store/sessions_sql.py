"""Sessions, the claims that make them, and the API's tokens as rows of `state.db`."""

import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Final, NamedTuple
from uuid import UUID

from msgspec import Meta

from haptera.core.sync.admission import AdmissionReason, Admit, Refuse, Repeat, TokenRow, admit
from haptera.model.errors import HapteraError
from haptera.runtime.identity.sealing import UNSEALED, Sealer
from haptera.runtime.identity.tokens import (
    TOKEN_TTL_S,
    ApiToken,
    Bearer,
    Scope,
    Token,
    mint,
)
from haptera.runtime.store.rows import Whole, read_rows
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.sqlite_writer import RefusalError
from haptera.selectors.selector import parse_selector
from haptera.wire.frame import Suite
from haptera.wire.seal import SECRET_BYTES, Agreement, Index

INDEX_BITS: Final = 32
# A free index is found at the first try, as good as always: 100,000 of 4,294,967,296 are taken.
INDEX_TRIES_MAX: Final = 16
# Tokens of the API that there may be, expired ones not counted.
TOKENS_MAX: Final = 1_000
_BOOT_BYTES: Final = 8
# In place of an intent: no boot is on its way, so the session that there is goes on.
ASKED_FOR: Final = ""

_Boot = Annotated[bytes, Meta(min_length=_BOOT_BYTES, max_length=_BOOT_BYTES)]
_SESSIONS: Final = (
    "SELECT s.peer, s.secret, s.cluster, n.uuid, s.incarnation, s.parent_index, s.child_index,"
    " s.suite, s.host, s.port, s.peer_boot, l.level FROM sessions s JOIN nodes n ON n.name = s.peer"
    " LEFT JOIN session_levels l ON l.peer = s.peer AND l.incarnation = s.incarnation"
)


@dataclass(frozen=True, slots=True)
class BootToken:
    """The token of a boot, and how long it can be claimed."""

    token: Token
    good_for_s: float

    @property
    def text(self) -> str:
        return self.token.text


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim that was admitted; with `again` the session was made by the same claim before."""

    session: SavedSession
    again: bool


@dataclass(frozen=True, slots=True)
class ClaimRefused:
    """A claim that was not; `node` is what the token is bound to, where its secret was right.

    `incarnation` is the one that was made for another's claim of it.
    """

    reason: AdmissionReason
    token: str
    node: str | None
    incarnation: int | None = None


def claim(
    connection: sqlite3.Connection,
    token: Token,
    public_key: bytes,
    *,
    cluster: UUID,
    address: tuple[str, int],
    wall_s: float,
    sealer: Sealer = UNSEALED,
) -> Claimed | ClaimRefused:
    """Decide on a claim and, where it is the first, make the incarnation and the session."""
    row = _token_row(connection, token)
    match admit(row, public_key, wall_s):
        case Admit(node):
            session = _new_session(connection, node, token.id, cluster, address)
            save_session(connection, session, sealer)
            connection.execute(
                "UPDATE enrolments SET claimed_by = ?, incarnation = ? WHERE id = ?",
                (public_key, session.agreement.incarnation, token.id),
            )
            return Claimed(session, again=False)
        case Repeat(node):
            (made,) = _read_sessions(connection, " WHERE s.peer = ?", (node,), sealer)
            return Claimed(made, again=True)
        case Refuse(reason):
            bound = None if row is None else row.node
            incarnation = None
            if reason is AdmissionReason.DOUBLE:
                found = "SELECT incarnation FROM enrolments WHERE id = ?"
                (incarnation,) = connection.execute(found, (token.id,)).fetchone()
            return ClaimRefused(reason, token.id, bound, incarnation)


def _token_row(connection: sqlite3.Connection, token: Token) -> TokenRow | None:
    """The token's row, if the secret is right and its node is still declared."""
    row = connection.execute(
        "SELECT t.sha256, t.node, t.expires_s, t.claimed_by, t.incarnation IS NOT NULL"
        " AND (s.incarnation IS NOT t.incarnation OR s.peer_boot IS NOT NULL)"
        " FROM enrolments t LEFT JOIN sessions s ON s.peer = t.node"
        " WHERE t.id = ? AND EXISTS (SELECT 1 FROM entities WHERE id = 'node:' || t.node)",
        (token.id,),
    ).fetchone()
    if not token.fits(None if row is None else row[0]):
        return None
    _, node, expires_s, claimed_by, spent = row
    return TokenRow(token.id, node, expires_s, claimed_by, bool(spent))


def _new_session(
    connection: sqlite3.Connection, node: str, token: str, cluster: UUID, address: tuple[str, int]
) -> SavedSession:
    uuid, incarnation = connection.execute(
        "UPDATE nodes SET incarnation = incarnation + 1 WHERE name = ? RETURNING uuid, incarnation",
        (node,),
    ).fetchone()
    agreement = Agreement(
        secret=secrets.token_bytes(SECRET_BYTES),
        cluster=cluster,
        node=UUID(uuid),
        incarnation=incarnation,
        parent_index=_free_index(connection),
        child_index=secrets.randbits(INDEX_BITS),
    )
    row = connection.execute("SELECT level FROM token_levels WHERE id = ?", (token,)).fetchone()
    return SavedSession(node, agreement, address, level=None if row is None else row[0])


def _free_index(connection: sqlite3.Connection) -> int:
    for _ in range(INDEX_TRIES_MAX):
        index = secrets.randbits(INDEX_BITS)
        if not connection.execute(
            "SELECT 1 FROM sessions WHERE parent_index = ?", (index,)
        ).fetchone():
            return index
    raise RefusalError("no free receiver index")


def save_session(
    connection: sqlite3.Connection, session: SavedSession, sealer: Sealer = UNSEALED
) -> None:
    """Write a session, its secret sealed, unless a later incarnation of the node has one."""
    agreement, boot = session.agreement, session.peer_boot
    connection.execute(
        "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (peer)"
        " DO UPDATE SET secret = ?2, cluster = ?3, incarnation = ?4, parent_index = ?5,"
        " child_index = ?6, suite = ?7, host = ?8, port = ?9, peer_boot = ?10"
        " WHERE incarnation <= ?4",
        (
            session.peer,
            sealer.sealed(agreement.secret),
            str(agreement.cluster),
            agreement.incarnation,
            agreement.parent_index,
            agreement.child_index,
            agreement.suite,
            *session.address,
            None if boot is None else boot.to_bytes(_BOOT_BYTES, "big"),
        ),
    )
    if session.level is not None:
        connection.execute(
            "INSERT INTO session_levels VALUES (?1, ?2, ?3) ON CONFLICT (peer)"
            " DO UPDATE SET incarnation = ?2, level = ?3 WHERE incarnation <= ?2",
            (session.peer, agreement.incarnation, session.level),
        )


def new_enrolment(
    connection: sqlite3.Connection, node: str, intent: str, good_for_s: float, wall_s: float
) -> BootToken:
    """Make a token by which a declared node can enrol: for an intent, or on request.

    Raises:
        RefusalError: the node is not declared.
    """
    if not connection.execute("SELECT 1 FROM nodes WHERE name = ?", (node,)).fetchone():
        raise RefusalError(f"{node} is not declared, so it cannot enrol")
    token = mint()
    connection.execute("DELETE FROM enrolments WHERE expires_s < ?", (wall_s - TOKEN_TTL_S,))
    connection.execute(
        "INSERT INTO enrolments VALUES (?, ?, ?, ?, ?, NULL, NULL)",
        (token.id, token.sha256, node, intent, wall_s + good_for_s),
    )
    return BootToken(token, good_for_s)


def invite(
    connection: sqlite3.Connection, node: str, good_for_s: float, wall_s: float
) -> BootToken:
    """Make a token for a node that runs already: the last one that was asked for is good."""
    connection.execute(
        "DELETE FROM enrolments WHERE node = ? AND intent = ? AND claimed_by IS NULL",
        (node, ASKED_FOR),
    )
    return new_enrolment(connection, node, ASKED_FOR, good_for_s, wall_s)


def drop_session(connection: sqlite3.Connection, peer: str) -> None:
    """End a session; what others may hold of it is of an earlier incarnation from now on."""
    connection.execute(
        "UPDATE nodes SET incarnation = incarnation + 1"
        " WHERE name = ?1 AND EXISTS (SELECT 1 FROM sessions WHERE peer = ?1)",
        (peer,),
    )
    connection.execute("DELETE FROM sessions WHERE peer = ?", (peer,))
    connection.execute("DELETE FROM enrolments WHERE node = ?", (peer,))


def load_incarnations(connection: sqlite3.Connection) -> dict[str, int]:
    """How far each node's incarnations were counted, by its name."""
    return dict(connection.execute("SELECT name, incarnation FROM nodes").fetchall())


def adopt(
    connection: sqlite3.Connection,
    sessions: Sequence[SavedSession],
    counted: Mapping[str, int],
    sealer: Sealer = UNSEALED,
) -> list[SavedSession]:
    """Take over sessions that other parents made; those that were news.

    Incarnations go on from where others have `counted` to, so that none is given twice.

    Of a node that is not declared here, and of an earlier incarnation, none is; nor one whose UUID
    or receiver index is another node's: that node's certificate or datagrams would be taken for it.
    """
    taken = []
    for one in sessions:
        agreement = one.agreement
        known = connection.execute(
            "UPDATE nodes SET uuid = ?1, incarnation = ?2 WHERE name = ?3 AND incarnation < ?2"
            " AND NOT EXISTS (SELECT 1 FROM nodes WHERE uuid = ?1 AND name != ?3)"
            " AND NOT EXISTS (SELECT 1 FROM sessions WHERE parent_index = ?4 AND peer != ?3)",
            (str(agreement.node), agreement.incarnation, one.peer, agreement.parent_index),
        )
        if known.rowcount == 1:
            save_session(connection, one, sealer)
            taken.append(one)
    held = load_incarnations(connection)
    for name, incarnation in counted.items():
        if held.get(name, incarnation) < incarnation:
            connection.execute(
                "UPDATE nodes SET incarnation = ? WHERE name = ?", (incarnation, name)
            )
    return taken


def load_sessions(connection: sqlite3.Connection, sealer: Sealer = UNSEALED) -> list[SavedSession]:
    """All sessions, by the name of the peer.

    Raises:
        HapteraError: one is sealed with a key that is not given.
    """
    return [*_read_sessions(connection, " ORDER BY s.peer", (), sealer)]


def _read_sessions(
    connection: sqlite3.Connection, which: str, parameters: tuple[str, ...], sealer: Sealer
) -> Iterator[SavedSession]:
    made = partial(_session, sealer=sealer)
    return read_rows(connection, "sessions", _SESSIONS + which, _SessionRow, made, parameters)


def seal_sessions(connection: sqlite3.Connection, sealer: Sealer) -> None:
    """Have the secrets of all sessions sealed with the first of the keys that are given.

    Raises:
        HapteraError: one is sealed with a key that is not given, or they cannot be written.
    """
    held = read_rows(
        connection,
        "sessions",
        "SELECT peer, secret FROM sessions",
        tuple[str, bytes],
        lambda row: row,
    )
    sealed = [
        (sealer.sealed(sealer.opened(secret, _what(peer))), peer)
        for peer, secret in held
        if sealer.is_due(secret)
    ]
    if not sealed:
        return
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("UPDATE sessions SET secret = ? WHERE peer = ?", sealed)
        connection.execute("COMMIT")
        # What they were before is in neither of its files from now on.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise HapteraError(
            f"the secrets of sessions cannot be sealed: {error}", do="check the disk, start again"
        ) from error


def _what(peer: str) -> str:
    return f"the session of {peer}"


class _SessionRow(NamedTuple):
    peer: str
    secret: bytes
    cluster: str
    uuid: UUID
    incarnation: Whole
    parent_index: Index
    child_index: Index
    suite: Suite
    host: str
    port: Annotated[int, Meta(ge=1, lt=1 << 16)]
    boot: _Boot | None
    level: str | None


def _session(row: _SessionRow, sealer: Sealer) -> SavedSession:
    peer, secret, cluster, uuid, incarnation, parent, child, suite, host, port, boot, level = row
    opened = sealer.opened(secret, _what(peer))
    agreement = Agreement(opened, _cluster(cluster), uuid, incarnation, parent, child, suite)
    peer_boot = None if boot is None else int.from_bytes(boot, "big")
    return SavedSession(peer, agreement, (host, port), peer_boot, level)


@lru_cache(1)
def _cluster(text: str) -> UUID:
    """The same for all of very many sessions."""
    return UUID(text)


def save_token(connection: sqlite3.Connection, token: ApiToken, wall_s: float) -> None:
    connection.execute("DELETE FROM tokens WHERE expires_s < ?", (wall_s,))
    (count,) = connection.execute("SELECT count(*) FROM tokens").fetchone()
    if count >= TOKENS_MAX:
        raise RefusalError(f"there are {count} tokens already: revoke some")
    bearer = token.bearer
    connection.execute(
        "INSERT INTO tokens (id, name, sha256, scope, expires_s, made_s, within)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            token.id,
            bearer.name,
            token.sha256,
            bearer.scope,
            token.expires_s,
            token.made_s,
            bearer.within,
        ),
    )


def drop_token(connection: sqlite3.Connection, key: str) -> None:
    connection.execute("DELETE FROM tokens WHERE id = ?", (key,))


def load_tokens(connection: sqlite3.Connection) -> list[ApiToken]:
    rows = read_rows(
        connection,
        "tokens",
        "SELECT id, name, scope, within, sha256, made_s, expires_s FROM tokens ORDER BY id",
        _ApiTokenRow,
        _token,
    )
    return [*rows]


class _ApiTokenRow(NamedTuple):
    id: str
    name: str
    scope: Scope
    within: str | None
    sha256: bytes
    made_s: float
    expires_s: float


def _token(row: _ApiTokenRow) -> ApiToken:
    if row.within is not None:
        parse_selector(row.within)
    bearer = Bearer(row.name, row.scope, row.within)
    return ApiToken(row.id, bearer, row.sha256, row.made_s, row.expires_s)
