"""What systemd is told of a daemon: that it is ready, that it lives, that it ends."""

import socket
import subprocess

import pytest

from tests.cli.rig import SITE, client_of, command, environment
from tests.lab.rig import WAIT_S_MAX
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.slow]


@pytest.mark.parametrize("abstract", [False, True])
def test_a_parent_says_when_it_is_ready_and_lives_and_ends(tmp_path, abstract):
    (tmp_path / "site.yaml").write_text(SITE)
    place = f"@{tmp_path.name}-notify" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{place[1:]}" if abstract else place)
        manager.settimeout(WAIT_S_MAX)
        words = ("serve", "--dir", tmp_path, "--listen", f"{NETWORK}.43.9", "--site", "site.yaml")
        told = {"NOTIFY_SOCKET": place, "WATCHDOG_USEC": "200000"}
        with subprocess.Popen(
            command(*words), cwd=tmp_path, env={**environment(), **told}, stderr=subprocess.DEVNULL
        ) as process:
            assert manager.recv(64) == b"READY=1"
            # It is ready once it can be asked.
            assert client_of(tmp_path).exists()
            assert [manager.recv(64) for _ in range(3)] == [b"WATCHDOG=1"] * 3
            process.terminate()
            while (word := manager.recv(64)) == b"WATCHDOG=1":
                pass
            assert word == b"STOPPING=1"
            assert process.wait(WAIT_S_MAX) == 0
