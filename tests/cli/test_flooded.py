"""A parent with few descriptors, flooded with connections that say nothing: it serves on."""

import re
import resource
import socket
from contextlib import ExitStack

import pytest

from haptera.runtime.network.accepting import DESCRIPTORS_RESERVED
from tests.cli.rig import ADDRESS, SITE, client_of, served, typed

pytestmark = [pytest.mark.net, pytest.mark.slow]

DESCRIPTORS = 1_024
WITHIN = ("sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh")
API, NODES = (ADDRESS, 4270), (ADDRESS, 4271)
WITHIN_S = 60
SOURCES = 100


@pytest.fixture
def descriptors():
    """Of our own, so many that the parent has fewer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4 * DESCRIPTORS:
        pytest.skip(f"a flood needs {4 * DESCRIPTORS} descriptors, {hard} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4 * DESCRIPTORS, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_flood_of_idle_connections_at_both_ports_stops_nothing(tmp_path, descriptors):
    (tmp_path / "site.yaml").write_text(SITE)
    with (
        served(tmp_path, "--site", tmp_path / "site.yaml", within=WITHIN) as process,
        ExitStack() as stack,
    ):
        for place, count in ((API, 1_500), (NODES, 800)):
            for number in range(count):
                # From many addresses: each has a share, which all together are not to exceed.
                source = (f"127.200.0.{1 + number % SOURCES}", 0)
                end = socket.create_connection(place, WITHIN_S, source)
                stack.enter_context(end)
                end.sendall(b"\x16\x03" if place is NODES else b"GET /")
        client = client_of(tmp_path)
        code, out, _ = typed("status", folder=tmp_path, client=client)
        assert (code, "n1" in out or "node" in out) == (0, True)
        fds = len(list((tmp_path / f"/proc/{process.pid}/fd").iterdir()))
        # For its store, its modules, whatever it has to start.
        assert fds < DESCRIPTORS - DESCRIPTORS_RESERVED // 2
    said = (tmp_path / "serve.out").read_text()
    assert not re.search("no connection can be accepted|Traceback|exceeded", said)
    assert len(said.splitlines()) < 60
