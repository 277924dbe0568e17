"""Where the API is and by which token it is asked: what a client file holds, and finding one."""

import os
import stat
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from haptera.client.address import parse_address
from haptera.client.errors import UnreachableError
from haptera.model.errors import Code, HapteraError, ParseError

CLIENT_FILE: Final = Path(".haptera") / "client.json"
SOCKET_FILE: Final = Path(".haptera") / "api.sock"
VARIABLE: Final = "HAPTERA_CLIENT"
PLACES_SEARCHED_MAX: Final = 64


class Access(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whom to ask, and as whom; a client file holds one as JSON.

    `constants` are handed in with each site file; `page` is the address of the status page, with
    a read-only token. A Unix socket (`unix:/PATH`) may need no token, nor does who shows the
    certificate in the file `identity`. Over TLS, `authority` is trusted, in PEM, and nobody else.
    """

    url: str
    token: str | None = None
    constants: dict[str, str] = {}
    page: str | None = None
    authority: str | None = None
    identity: str | None = None

    def __repr__(self) -> str:
        """Without what would let a reader of logs in."""
        return f"Access({self.url!r})"


class Found(msgspec.Struct, frozen=True):
    """What a client file holds, where it is, and what is doubtful about it."""

    access: Access
    path: Path
    warning: str | None


def find(given: Path | None = None, *, start: Path | None = None) -> Found:
    """The client file given, named by $HAPTERA_CLIENT, or nearest above `start` (or here).

    Where there is none, a parent's socket beside its place: who asks there is known by name.

    Raises:
        HapteraError: there is no such file, or it is none.
    """
    path = given or _named() or _nearest(start or Path.cwd())
    if path.is_socket():
        return Found(Access(f"unix:{quote(str(path.absolute()))}"), path, None)
    try:
        text, mode = path.read_bytes(), path.stat().st_mode
    except OSError as error:
        raise UnreachableError(
            f"no client file: {error.strerror}",
            where=str(path),
            do="name one with --client",
            code=Code.NO_CLIENT_FILE,
        ) from None
    try:
        access = msgspec.json.decode(text, type=Access)
    except (ValueError, RecursionError) as error:
        raise ParseError(
            f"is not a client file: {error}",
            where=str(path),
            do='write {"url": "http://…", "token": "…"}',
        ) from None
    try:
        parse_address(access.url)
    except HapteraError as error:
        raise HapteraError(error.what, where=str(path), do=error.do, code=error.code) from None
    open_to_others = mode & (stat.S_IRWXG | stat.S_IRWXO)
    warning = f"{path} can be read by others; chmod 600 it" if open_to_others else None
    return Found(access, path, warning)


def _named() -> Path | None:
    text = os.environ.get(VARIABLE)
    return Path(text) if text else None


def _nearest(start: Path) -> Path:
    for folder in [start, *start.parents][:PLACES_SEARCHED_MAX]:
        for place in (CLIENT_FILE, SOCKET_FILE):
            if (path := folder / place).exists():
                return path
    raise UnreachableError(
        f"no {CLIENT_FILE} here or in a folder above",
        where=str(start),
        do=f"start a lab with `haptera lab`, or name a file with --client or ${VARIABLE}",
        code=Code.NO_CLIENT_FILE,
    )
