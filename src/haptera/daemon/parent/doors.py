"""The ways in to a parent's API: its address, with TLS or without, and a Unix socket."""

import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import Final, Self, assert_never

from starlette.applications import Starlette

from haptera.api.requests.callers import EntryRules
from haptera.api.serving.server import CONNECTIONS_MAX, Server, listen, listen_unix
from haptera.daemon.settings import ParentSettings
from haptera.kinds.host_port import HostPort
from haptera.model.errors import HapteraError
from haptera.runtime import clock
from haptera.runtime.identity.pki import Authority, issue_api
from haptera.runtime.identity.tokens import Bearer
from haptera.runtime.network.accepting import make_room, share_of
from haptera.runtime.network.own_certificate import OwnCertificate
from haptera.runtime.network.peers import CertifiedPeer, Peer, PeerRules, UnixPeer
from haptera.runtime.network.tls import server_context
from haptera.runtime.network.tls_server import CONNECTIONS_MAX as NODES_CONNECTIONS_MAX
from haptera.runtime.store.store import Store

SOCKET: Final = "api.sock"
# On the Unix socket, so that people on this machine get in when the other door is crowded.
OWN_CONNECTIONS_MAX: Final = 128
ALL_CONNECTIONS_MAX: Final = CONNECTIONS_MAX + OWN_CONNECTIONS_MAX + NODES_CONNECTIONS_MAX
# Where rules let others in, they must be able to open the socket; who they are is asked then.
_OWN_ONLY: Final = 0o600
_EVERYBODY: Final = 0o666


@dataclass(frozen=True, slots=True)
class Doors:
    """Where the API is served: at `url`, with TLS if so, and on the socket at `path`.

    `counts` says how many connections gave way, or were refused.
    `trusted` is the authority's certificate, by which the server is known, where there is TLS.
    """

    url: str
    path: Path
    entry: EntryRules
    trusted: str | None
    _outer: socket.socket
    _inner: socket.socket
    _certificate: OwnCertificate | None
    _tls: ssl.SSLContext | None
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def open(
        cls,
        settings: ParentSettings,
        authority: Authority,
        store: Store,
        wall_s: Callable[[], float] = clock.wall_s,
    ) -> Self:
        """Listen as the settings say.

        Raises:
            HapteraError: an address or a path cannot be used, or a rule lets nobody in.
        """
        ways = settings.ways
        rules = PeerRules.of(ways.let_in)
        address = ways.api or settings.address
        names = _names(address, ways.hosts)
        make_room()
        beside = Path(settings.client).with_name(SOCKET)
        path = beside if ways.socket is None else Path(ways.socket)
        outer = listen(address, settings.api_port)
        try:
            inner = listen_unix(path, _EVERYBODY if rules.rules else _OWN_ONLY)
        except BaseException:
            outer.close()
            raise
        certificate = tls = None
        if not _is_own(address):
            certificate = OwnCertificate(partial(issue_api, authority, names), wall_s)
            # Who has a certificate may show it.
            context = server_context(certificate.identity, authority.ca_pem, ssl.CERT_OPTIONAL)
            tls = certificate.shown_by(context)
        place = HostPort(names[0], settings.api_port)
        url = f"{'http' if tls is None else 'https'}://{place}"
        entry = EntryRules(ways.hosts, KnownCallers(rules, authority, store).bearer)
        trusted = None if tls is None else authority.ca_pem.decode()
        return cls(url, path, entry, trusted, outer, inner, certificate, tls)

    def servers(self, app: Starlette) -> Iterator[Server | OwnCertificate]:
        """What serves the API, and renews its certificate, where there is TLS.

        Each door has a share of the connections, which no other takes.
        """
        outer_max = share_of(CONNECTIONS_MAX, ALL_CONNECTIONS_MAX)
        inner_max = share_of(OWN_CONNECTIONS_MAX, ALL_CONNECTIONS_MAX)
        yield Server(app, self._outer, self._tls, counts=self.counts, connections_max=outer_max)
        yield Server(app, self._inner, counts=self.counts, connections_max=inner_max)
        if self._certificate is not None:
            yield self._certificate

    def nodes_max(self) -> int:
        """How many connections those may have who are not served here: the nodes."""
        return share_of(NODES_CONNECTIONS_MAX, ALL_CONNECTIONS_MAX)

    def close(self) -> None:
        """Listen no more."""
        self.path.unlink(missing_ok=True)
        self._outer.close()
        self._inner.close()


@dataclass(frozen=True, slots=True)
class KnownCallers:
    """Who is let in without a token, by what their connection says of them."""

    rules: PeerRules
    authority: Authority
    store: Store

    def bearer(self, peer: Peer) -> Bearer | None:
        match peer:
            case UnixPeer():
                return self.rules.bearer(peer)
            case CertifiedPeer(cluster, token):
                return self.store.bearer_of(token) if cluster == self.authority.cluster else None
            case _:
                assert_never(peer)


def _names(address: str, hosts: tuple[str, ...]) -> list[str]:
    """What the API is called, its URL by the first.

    Raises:
        HapteraError: the address is none, or is every one and there is no name.
    """
    try:
        everywhere = ip_address(address).is_unspecified
    except ValueError:
        raise HapteraError(
            "this is not an address", where=f"--api {address}", do="give an IPv4 or IPv6 address"
        ) from None
    if not everywhere:
        return [address, *hosts]
    if not hosts:
        raise HapteraError(
            "an API on all addresses needs a host name",
            where=f"--api {address}",
            do="add --host NAME",
        )
    return list(hosts)


def _is_own(address: str) -> bool:
    """Whether an address is reached from this machine only, and that over IPv4."""
    own = ip_address(address)
    return isinstance(own, IPv4Address) and own.is_loopback
