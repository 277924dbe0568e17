"""The doors of a parent: who may open its socket, and who is let in by what a connection says."""

import asyncio
import contextlib
import socket
import ssl
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from cryptography import x509
from starlette.applications import Starlette

from haptera.daemon.parent.doors import SOCKET, Doors, KnownCallers
from haptera.daemon.settings import ParentSettings, Ways
from haptera.model.errors import HapteraError
from haptera.runtime.identity.pki import PARENT_DAYS, Authority, open_authority
from haptera.runtime.identity.tokens import Bearer, Scope
from haptera.runtime.network.peers import CertifiedPeer, PeerRules
from haptera.runtime.store.store import Store
from tests.api.serving import OWN

pytestmark = pytest.mark.net

CLUSTER, OTHER = UUID(int=7), UUID(int=8)
EVE = Bearer("eve", Scope.WRITE, "n1")
NOW_S = 1_800_000_000.0


def has_ipv6() -> bool:
    return bool(Path("/proc/net/if_inet6").read_bytes())


class Parent:
    """What doors need of one: its authority and its store, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.authority: Authority = open_authority(folder / "ca", NOW_S, CLUSTER)
        self.store = Store.open(folder / "state.db", deliver=lambda _: None, wall_s=lambda: NOW_S)
        self._folder = folder

    @contextlib.contextmanager
    def doors(
        self,
        *,
        port: int = 0,
        wall_s: Callable[[], float] = lambda: NOW_S,
        **ways: tuple[str, ...] | str,
    ) -> Iterator[Doors]:
        client = str(self._folder / "client.json")
        settings = ParentSettings("", OWN, client, "", api_port=port, ways=Ways(**ways))
        doors = Doors.open(settings, self.authority, self.store, wall_s)
        try:
            yield doors
        finally:
            doors.close()


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Parent]:
    one = Parent(tmp_path)
    yield one
    one.store.close()


def test_a_certificate_lets_in_at_its_own_cluster_alone(parent: Parent) -> None:
    known = KnownCallers(PeerRules.of([]), parent.authority, parent.store)
    key = parent.store.mint_token(EVE, 60.0).row.id

    shown = [(CLUSTER, key), (OTHER, key), (CLUSTER, "0" * 16)]
    assert [known.bearer(CertifiedPeer(*one)) for one in shown] == [EVE, None, None]


@pytest.mark.parametrize("address", ["0.0.0.0", "::1", "::", "::ffff:127.0.0.1"])
def test_who_may_be_elsewhere_is_served_with_tls_only(parent: Parent, address: str) -> None:
    if ":" in address and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with parent.doors(api=address, hosts=("parent.example",)) as doors:
        assert (doors.url.partition(":")[0], doors.trusted is not None) == ("https", True)
    with parent.doors(api="127.99.1.1") as doors:
        assert (doors.url.partition(":")[0], doors.trusted) == ("http", None)


@pytest.mark.parametrize(("let_in", "mode"), [((), 0o600), (("@0=read",), 0o666)])
def test_others_can_open_the_socket_where_a_rule_lets_some_in_and_it_goes_with_the_parent(
    parent: Parent, tmp_path: Path, let_in: tuple[str, ...], mode: int
) -> None:
    with parent.doors(let_in=let_in) as doors:
        assert doors.path == tmp_path / SOCKET
        assert stat.S_IMODE(doors.path.stat().st_mode) == mode
    assert not doors.path.exists()


def test_where_one_door_cannot_be_opened_none_is(parent: Parent, tmp_path: Path) -> None:
    with socket.create_server((OWN, 0)) as free:
        port = free.getsockname()[1]
    nowhere = str(tmp_path / "nowhere" / SOCKET)
    with (
        pytest.raises(HapteraError, match="cannot listen"),
        parent.doors(port=port, socket=nowhere),
    ):
        pass
    with parent.doors(port=port) as doors:
        assert doors.url == f"http://{OWN}:{port}"


async def shown_at(port: int) -> bytes:
    """The certificate that is shown to who connects there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("::1", port, ssl=context)
    shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return shown


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_its_certificate_is_renewed_while_it_serves(parent: Parent) -> None:
    wall_s = [NOW_S]
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as free:
        port = free.getsockname()[1]

    async def story() -> None:
        with parent.doors(api="::1", port=port, wall_s=lambda: wall_s[0]) as doors:
            serving, own, certificate = doors.servers(Starlette())
            tasks = [asyncio.create_task(one.run()) for one in (serving, own)]
            first = await shown_at(port)
            tasks.append(asyncio.create_task(certificate.run()))
            await asyncio.sleep(0)
            assert await shown_at(port) == first

            tasks.pop().cancel()
            wall_s[0] += PARENT_DAYS * 86_400 / 2 + 1
            tasks.append(asyncio.create_task(certificate.run()))
            while (then := await shown_at(port)) == first:
                pass
            ends = x509.load_der_x509_certificate(then).not_valid_after_utc.timestamp()
            assert ends == int(wall_s[0]) + PARENT_DAYS * 86_400
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(asyncio.wait_for(story(), 60))
