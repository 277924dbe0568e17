"""The doors of a parent: who may open its socket, and who is let in by what a connection says."""

import contextlib
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from haptera.daemon.parent.doors import SOCKET, Doors, KnownCallers
from haptera.daemon.settings import ParentSettings, Ways
from haptera.model.errors import HapteraError
from haptera.runtime.identity.pki import Authority, open_authority
from haptera.runtime.identity.tokens import Bearer, Scope
from haptera.runtime.network.peers import CertifiedPeer, PeerRules
from haptera.runtime.store.store import Store
from tests.api.serving import OWN

pytestmark = pytest.mark.net

CLUSTER, OTHER = UUID(int=7), UUID(int=8)
EVE = Bearer("eve", Scope.WRITE, "n1")
NOW_S = 1_800_000_000.0


class Parent:
    """What doors need of one: its authority and its store, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.authority: Authority = open_authority(folder / "ca", NOW_S, CLUSTER)
        self.store = Store.open(folder / "state.db", deliver=lambda _: None, wall_s=lambda: NOW_S)
        self._folder = folder

    @contextlib.contextmanager
    def doors(self, *, port: int = 0, **ways: tuple[str, ...] | str) -> Iterator[Doors]:
        client = str(self._folder / "client.json")
        settings = ParentSettings("", OWN, client, "", api_port=port, ways=Ways(**ways))
        doors = Doors.open(settings, self.authority, self.store)
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
    if ":" in address and not Path("/proc/net/if_inet6").read_bytes():
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
