"""A real router (BIRD 2) beside a test: its table is read by its own command."""

import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.rig import wait_for
from tests.network import NETWORK

needs_bird = pytest.mark.skipif(shutil.which("bird") is None, reason="there is no bird here")

PORT = 1790
AS_NUMBER = 65_001
CONFIG = """
router id 192.0.2.{number};
protocol device {{}}
protocol static {{ ipv4 {{}}; {routes} }}
protocol bgp shim {{
  local {address} port {port} as {as_number};
  neighbor {ours} as {as_number};
  multihop; passive on; strict bind yes; error wait time 1, 2;
  ipv4 {{ import all; export filter {{
    if source = RTS_BGP then reject;
    bgp_next_hop = 192.0.2.7; accept;
  }}; }};
}}
"""


@dataclass(frozen=True, slots=True)
class Bird:
    """A router, and where its peer talks to it from."""

    place: Path
    number: int

    @property
    def address(self) -> str:
        return f"{NETWORK}.43.{self.number}"

    @property
    def ours(self) -> str:
        return f"{NETWORK}.43.{100 + self.number}"

    @property
    def control(self) -> Path:
        return self.place / f"{self.number}.ctl"

    @property
    def config(self) -> Path:
        return self.place / f"{self.number}.conf"

    def ask(self, *words: str) -> str:
        return subprocess.run(
            ["birdc", "-s", self.control, *words], capture_output=True, text=True, check=True
        ).stdout

    def configure(self, routes: Iterable[str]) -> None:
        """Have these routes of its own from now on."""
        self.write(routes)
        self.ask("configure")

    def write(self, routes: Iterable[str]) -> None:
        lines = " ".join(f"route {one} blackhole;" for one in routes)
        places = {"address": self.address, "ours": self.ours, "port": PORT}
        text = CONFIG.format(number=self.number, routes=lines, as_number=AS_NUMBER, **places)
        self.config.write_text(text)

    def networks(self) -> set[str]:
        """Those of which its peer told it."""
        lines = self.ask("show", "route", "protocol", "shim").splitlines()
        return {line.split()[0] for line in lines if "/" in line}

    def is_served(self) -> bool:
        """True while it listens for its peer."""
        with socket.socket() as one:
            return one.connect_ex((self.address, PORT)) == 0


@contextmanager
def running_bird(place: Path, routes: Iterable[str] = (), number: int = 1) -> Iterator[Bird]:
    bird = Bird(place, number)
    bird.write(routes)
    process = subprocess.Popen(["bird", "-f", "-c", bird.config, "-s", bird.control])
    try:
        wait_for(lambda: bird.control.exists() and bird.is_served())
        yield bird
    finally:
        process.kill()
        process.wait()
