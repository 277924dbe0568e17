"""A real NATS server with JetStream, for tests."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

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
        wait_for("the server answers", self._answers, within_s=30)

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def _answers(self) -> bool:
        host, _, port = self.address.partition(":")
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return True
        return False


@contextmanager
def nats_server(address: str, directory: Path) -> Iterator[NatsServer]:
    if shutil.which("nats-server") is None:
        pytest.skip("there is no nats-server")
    server = NatsServer(address, directory)
    server.start()
    try:
        yield server
    finally:
        server.kill()
