"""A real NATS server with JetStream, for tests."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from haptera.kinds.host_port import HostPort
from tests.kills.processes import wait_for


class NatsServer:
    """A server at an address of its own, whose streams outlive its process."""

    def __init__(self, address: str, directory: Path) -> None:
        self.address = address
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        host, _, port = self.address.partition(":")
        command = ["nats-server", "-a", host, "-p", port, "-js", "-sd", str(self._directory)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for("the server answers", lambda: answers(self.address), within_s=30)

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()


def answers(address: str) -> bool:
    """Whether somebody listens there."""
    place = HostPort.parse(address, None)
    with suppress(OSError), socket.create_connection((place.host, place.port), timeout=1):
        return True
    return False


def need_server() -> None:
    """Skip a test where there is none."""
    if shutil.which("nats-server") is None:
        pytest.skip("there is no nats-server")


@contextmanager
def nats_server(address: str, directory: Path) -> Iterator[NatsServer]:
    need_server()
    server = NatsServer(address, directory)
    server.start()
    try:
        yield server
    finally:
        server.kill()
