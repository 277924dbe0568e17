"""Where does the time of a real boot go: firmware, DHCP, loader, transfer, kernel, agent?

    .venv/bin/python -m benchmarks.boot_share [DIRECTORY]

Reads what a run of the rack's demo has left there (default: .haptera/demos/rack): the capture on
the bridge, what each BMC was told, and the consoles. Of each machine with a BIOS its first boot
counts: with UEFI, iPXE does not close its connection. The BMCs' records have the clock since boot:
to be run on the machine of the demo, before it restarts.
"""

import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

# The ports of the module netboot, and of the agents.
DHCP, TFTP, HTTP, AGENT = 67, 69, 4281, 4271
PHASES = ("firmware", "DHCP", "loader", "transfer", "kernel", "minOS", "agent")
PACKET = re.compile(r"^(\d+\.\d+) IP \S+ > \S+\.(\d+): (?:Flags \[(.*?)\])?")
RUNS_INIT = re.compile(rb"\[ *(\d+\.\d+)\] Run /init")


class Packet(NamedTuple):
    """What a machine sent: when, to which port, and the flags of its TCP."""

    at_s: float
    port: int
    flags: str


def packets(capture: Path, mac: str) -> Iterator[Packet]:
    """All that this card has sent, in order."""
    command = ["tcpdump", "-ttnr", str(capture), f"ether src {mac}"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in printed.splitlines():
        if (found := PACKET.match(line)) is not None:
            yield Packet(float(found[1]), int(found[2]), found[3] or "")


def phases(capture: Path, mac: str, node: Path) -> list[float] | None:
    """The seconds of each phase of its first boot; None where it has not come to its end."""
    orders = [json.loads(one) for one in (node / "bmc/commands.jsonl").read_text().splitlines()]
    sent = list(packets(capture, mac))
    offset_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    stamp = RUNS_INIT.search((node / "console.log").read_bytes())
    try:
        on_s = next(one["at_ns"] for one in orders if one["order"] == "power 1") / 1e9 + offset_s
        asks = next(one for one in sent if one.port == DHCP)
        loads = next(one for one in sent if one.port == TFTP)
        asks_again = next(one for one in sent if one.port == DHCP and one > loads)
        # iPXE fetches all over one connection; the minOS opens others.
        opens = [one.at_s for one in sent if one.port == HTTP and one.flags == "S"]
        up_s = opens[1]
        closed_s = next(one.at_s for one in sent if one.port == HTTP and "F" in one.flags)
        hello_s = next(one.at_s for one in sent if one.port == AGENT and not one.flags)
    except (StopIteration, IndexError):
        return None
    if closed_s > up_s:
        return None  # As with UEFI: when all was transferred, nobody tells.
    kernel_s = float(stamp[1]) if stamp is not None else 0.0
    return [
        asks.at_s - on_s,
        (loads.at_s - asks.at_s) + (opens[0] - asks_again.at_s),
        asks_again.at_s - loads.at_s,
        closed_s - opens[0],
        kernel_s,
        up_s - closed_s - kernel_s,
        hello_s - up_s,
    ]


def main(directory: Path) -> None:
    home = directory / ".haptera"
    site = yaml.safe_load(Path("examples/rack/site.yaml").read_text(encoding="utf-8"))
    base = int(site["nodes"]["rack1n1"]["mac"].rpartition(":")[2], 16) - 1
    found: dict[str, list[float]] = {}
    for node in sorted((home / "nodes").iterdir()):
        number = int(node.name.rpartition("n")[2])
        mac = f"52:54:00:00:01:{base + number:02x}"
        if (seconds := phases(home / "lab" / "boot.pcap", mac, node)) is not None:
            found[node.name] = seconds
    print(f"{'seconds':10}" + "".join(f"{name:>10}" for name in (*PHASES, "all")))
    for name, seconds in found.items():
        print(f"{name:10}" + "".join(f"{one:10.1f}" for one in (*seconds, sum(seconds))))
    shares = [
        statistics.median(seconds[place] / sum(seconds) for seconds in found.values())
        for place in range(len(PHASES))
    ]
    print(f"{'share':10}" + "".join(f"{one:10.0%}" for one in shares))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".haptera/demos/rack"))
