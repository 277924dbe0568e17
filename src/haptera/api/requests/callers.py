"""Who asks: by a token, or, without one, by what the connection itself says of them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request

from haptera.model.errors import Code, HapteraError
from haptera.runtime.identity.tokens import Bearer
from haptera.runtime.network.peers import Peer, UnixPeer

# Where the server keeps with each request who is at the other end of its connection.
PEER: Final = "peer"
# And the certificate that they showed, once it was verified.
CERTIFICATE: Final = "certificate"

# And whether it was let in.
LET_IN: Final = "let in"

CheckToken = Callable[[str], Bearer | None]
CheckPeer = Callable[[Peer], Bearer | None]


def nobody(_peer: Peer) -> None:
    """No connection lets anybody in by itself."""


@dataclass(frozen=True, slots=True)
class EntryRules:
    """Under which names, besides addresses, the API may be asked; who may without a token."""

    hosts: Collection[str] = ()
    check_peer: CheckPeer = nobody


ENTRY: Final = EntryRules()


@dataclass(frozen=True, slots=True)
class Callers:
    """Whom tokens and connections let in; nobody else is."""

    check_token: CheckToken
    check_peer: CheckPeer

    def of(self, request: Request) -> Bearer:
        """Who asks; a token counts before the connection, also where it allows less.

        Raises:
            HapteraError: nobody whom something lets in.
        """
        known = self._known(request)
        request.scope.setdefault("state", {})[LET_IN] = True
        return known

    def _known(self, request: Request) -> Bearer:
        header = request.headers.get("authorization")
        peer = request.scope.get("state", {}).get(PEER)
        if header is None and peer is not None:
            return self._peer(request, peer)
        scheme, _, text = (header or "").partition(" ")
        known = self.check_token(text.strip()) if scheme.lower() == "bearer" else None
        if known is None:
            raise HapteraError(
                "no valid token" if scheme else "no token",
                where="the header Authorization",
                do="send `Authorization: Bearer TOKEN`",
                code=Code.UNAUTHENTICATED,
            )
        return known

    def still(self, request: Request, known: Bearer) -> bool:
        """Whether who asked may go on being answered as they were let in."""
        try:
            return self.of(request) == known
        except HapteraError:
            return False

    def _peer(self, request: Request, peer: Peer) -> Bearer:
        # A page elsewhere can have a browser ask here, which shows who it is by itself.
        if _is_elsewhere(request, peer):
            raise HapteraError(
                "a web page asks without a token",
                where="the headers Origin and Sec-Fetch-Site",
                do="send `Authorization: Bearer TOKEN`",
                code=Code.FORBIDDEN,
            )
        known = self.check_peer(peer)
        if known is None:
            unnamed = isinstance(peer, UnixPeer)
            rule = f"; or start the parent with --let-in {peer}=read" if unnamed else ""
            raise HapteraError(
                f"{peer} has no access", do=f"send a token{rule}", code=Code.FORBIDDEN
            )
        return known


def _is_elsewhere(request: Request, peer: Peer) -> bool:
    """Whether a page asks that is not this server's own; a Unix socket has none."""
    headers = request.headers
    if isinstance(peer, UnixPeer):
        return "origin" in headers
    own = f"https://{headers.get('host')}"
    site = headers.get("sec-fetch-site", "same-origin")
    return headers.get("origin", own) != own or site not in ("same-origin", "none")
