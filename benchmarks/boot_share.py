"""Where does the time of a real boot go: firmware, DHCP, loader, transfer, kernel, agent?

    .venv/bin/python -m benchmarks.boot_share [DIRECTORY]

Reads what a run of the rack's demo has left there (default: .haptera/demos/rack): the capture on
the bridge, what each BMC was told, and the consoles. Of each machine its first boot counts. The
BMCs' records have the clock since boot: to be run on the machine of the demo, before it restarts.
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
PACKET = re.compile(r"^(\d+\.\d+) IP \S+\.(\d+) > \S+\.(\d+): (?:Flags \[(.*?)\])?")
RUNS_INIT = re.compile(rb"\[ *(\d+\.\d+)\] Run /init")


class Packet(NamedTuple):
    """What a machine sent: when, from and to which port, and the flags of its TCP."""

    at_s: float
    source: int
    port: int
    flags: str


def packets(capture: Path, mac: str) -> Iterator[Packet]:
    """All that this card has sent, in order."""
    command = ["tcpdump", "-ttnr", str(capture), f"ether src {mac}"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for line in printed.splitlines():
        if (found := PACKET.match(line)) is not None:
            yield Packet(float(found[1]), int(found[2]), int(found[3]), found[4] or "")


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
        loader, minos = [one for one in sent if one.port == HTTP and one.flags == "S"][:2]
        hello_s = next(one.at_s for one in sent if one.port == AGENT and not one.flags)
    except (StopIteration, ValueError):
        return None
    # With UEFI, iPXE closes its connection never: all is transferred once it acknowledges no more.
    loaded_s = max(
        one.at_s
        for one in sent
        if (one.source, one.port) == (loader.source, HTTP)
        and "R" not in one.flags
        and one.at_s < minos.at_s
    )
    kernel_s = float(stamp[1]) if stamp is not None else 0.0
    return [
        asks.at_s - on_s,
        (loads.at_s - asks.at_s) + (loader.at_s - asks_again.at_s),
        asks_again.at_s - loads.at_s,
        loaded_s - loader.at_s,
        kernel_s,
        minos.at_s - loaded_s - kernel_s,
        hello_s - minos.at_s,
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
    uefi = site["lab"]["uefi"].split(",")
    for firmware, names in (("BIOS", found.keys() - {*uefi}), ("UEFI", found.keys() & {*uefi})):
        shares = [
            statistics.median(found[name][place] / sum(found[name]) for name in names)
            for place in range(len(PHASES))
        ]
        print(f"{firmware:10}" + "".join(f"{one:10.0%}" for one in shares))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".haptera/demos/rack"))
