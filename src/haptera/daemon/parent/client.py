"""The client file: what lets a command line find the parent, and in."""

from pathlib import Path
from typing import Final

import msgspec

from haptera.client.access import Access
from haptera.daemon.parent.doors import Doors
from haptera.runtime import clock
from haptera.runtime.identity.private import write_private
from haptera.runtime.identity.tokens import Bearer, Scope, parse_token
from haptera.runtime.store.store import Store

CLIENT_TTL_S: Final = 90 * 86_400
PAGE_TTL_S: Final = 86_400
# A token that ends sooner is not kept over a start.
KEPT_S_MIN: Final = CLIENT_TTL_S // 3
_ADMIN: Final = Bearer("cli", Scope.ADMIN)


def write_client(place: Path, doors: Doors, constants: dict[str, str], store: Store) -> None:
    """Write tokens where only their owner can read: the one of before, while it holds long enough.

    A new one at each start would leave all of them lying about, each an admin's for its 90 days.
    """
    admin = _kept_token(place, store) or store.mint_token(_ADMIN, CLIENT_TTL_S).text
    read = store.mint_token(Bearer("page", Scope.READ), PAGE_TTL_S).text
    page = f"{doors.url}/#token={read}"
    client = Access(doors.url, admin, constants, page, doors.trusted)
    write_private(place, msgspec.json.encode(client))


def _kept_token(place: Path, store: Store) -> str | None:
    """The token of the client file that is there, where it is still good for a while."""
    try:
        text = msgspec.json.decode(place.read_bytes(), type=Access).token or ""
    except (OSError, ValueError, RecursionError):
        return None
    token = parse_token(text)
    if token is None or store.check_token(text) != _ADMIN:
        return None
    row = next((one for one in store.tokens() if one.id == token.id), None)
    return text if row is not None and row.expires_s - clock.wall_s() > KEPT_S_MIN else None
