"""The client file: what lets a command line in without being told where the parent is."""

from pathlib import Path
from typing import Final

import msgspec

from haptera.daemon.doors import Doors
from haptera.runtime.identity.private import write_private
from haptera.runtime.identity.tokens import Bearer, Scope
from haptera.runtime.store.store import Store

CLIENT_TTL_S: Final = 90 * 86_400
PAGE_TTL_S: Final = 86_400


class Client(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where the API is, and a token for it; `page` opens the status page, read-only, for a day.

    With TLS, `authority` is the certificate to trust. `constants` are handed in with each site
    file that is applied by this client.
    """

    url: str
    token: str
    page: str
    constants: dict[str, str]
    authority: str | None = None


def write_client(place: Path, doors: Doors, constants: dict[str, str], store: Store) -> None:
    """Make new tokens and write them where only their owner can read."""
    admin = store.mint_token(Bearer("cli", Scope.ADMIN), CLIENT_TTL_S).text
    read = store.mint_token(Bearer("page", Scope.READ), PAGE_TTL_S).text
    page = f"{doors.url}/#token={read}"
    client = Client(doors.url, admin, page, constants, doors.trusted)
    write_private(place, msgspec.json.encode(client))
