"""A real router (BIRD 2) beside a test: its table is read by its own command."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab.rig import wait_for
from tests.network import NETWORK

ADDRESS, OURS, PORT = f"{NETWORK}.43.2", f"{NETWORK}.43.1", 1790
AS_NUMBER = 65_001
CONFIG = """
router id 192.0.2.1;
protocol device {{}}
protocol static {{ ipv4 {{}}; {routes} }}
protocol bgp shim {{
  local {address} port {port} as {as_number};
  neighbor {ours} as {as_number};
  multihop; passive on; error wait time 1, 2;
  ipv4 {{ import all; export filter {{ bgp_next_hop = 192.0.2.7; accept; }}; }};
}}
"""


@dataclass(frozen=True, slots=True)
class Bird:
    control: Path

    def ask(self, *words: str) -> str:
        return subprocess.run(
            ["birdc", "-s", self.control, *words], capture_output=True, text=True, check=True
        ).stdout

    def networks(self) -> set[str]:
        """Those of which its peer told it."""
        lines = self.ask("show", "route", "protocol", "shim").splitlines()
        return {line.split()[0] for line in lines if "/" in line}


def is_served() -> bool:
    """Whether it listens for its peer."""
    with socket.socket() as one:
        return one.connect_ex((ADDRESS, PORT)) == 0


@contextmanager
def running_bird(place: Path, routes: tuple[str, ...] = ()) -> Iterator[Bird]:
    config, control = place / "bird.conf", place / "bird.ctl"
    lines = " ".join(f"route {one} blackhole;" for one in routes)
    config.write_text(
        CONFIG.format(routes=lines, address=ADDRESS, port=PORT, as_number=AS_NUMBER, ours=OURS)
    )
    process = subprocess.Popen(["bird", "-f", "-c", config, "-s", control])
    try:
        wait_for(lambda: control.exists() and is_served())
        yield Bird(control)
    finally:
        process.kill()
        process.wait()
