"""What a roll costs: nobody serves while a node changes over, and all nodes fetch the image.

    python -m benchmarks.roll [ROUNDS]        as root; needs runc and mksquashfs

In turns, on two small images: the flip of the module `system`, whose next image is staged before,
and a shell script that does what many sites do: end the container, unmount, mount the other image,
run it. Each init says by the kernel's clock (10 ms) when it begins and when it ends; the outage is
from the end of the old one to the beginning of the new one.

Then 50 nodes at once fetch an artefact, each in a process of its own, verified while it streams
and read once more; beside 50 curl, which verify nothing, from the same server.
"""

import asyncio
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from haptera.images.fetch import ArtefactSource
from haptera.images.manifest import ImageManifest
from haptera.images.parent import Parent
from haptera.lab import tree
from haptera.modules.system.bundle import SystemSurroundings, configuration
from haptera.modules.system.module import SystemSettings, connect, flip, stage, start, stop
from haptera.modules.system.one_system import System
from tests.modules.image_rig import Rig, a_root, squashed

ROUNDS = 50
NODES = 50
ARTEFACT_BYTES = 8 << 20
CLOCK = "read up rest </proc/uptime; echo"
INIT = (
    f"trap '{CLOCK} ended $up; exit 0' TERM; {CLOCK} begun $up; while :; do sleep 99 & wait; done"
)

BARE = """
set -e
cd "$1"
runc --root state kill box TERM 2>/dev/null || true
while runc --root state state box 2>/dev/null | grep -q '"status": "running"'; do :; done
runc --root state delete --force box
for one in root scratch lower; do umount "$one" 2>/dev/null || true; done
mount -t squashfs -o loop,ro "$2" lower
mount -t tmpfs tmpfs scratch
mkdir scratch/upper scratch/work
mount -t overlay -o lowerdir=lower,upperdir=scratch/upper,workdir=scratch/work overlay root
runc --root state run --detach --bundle . box </dev/null >>output.log 2>&1
# The first process of a container does not hear a signal that it does not handle yet.
until [ "$(grep -c begun output.log)" -gt "$3" ]; do sleep 0.02; done
"""


def outages_ms(output: Path) -> list[float]:
    """From each end to the beginning that follows it."""
    words = [line.split() for line in output.read_text().splitlines()]
    told = [(one[0], float(one[1])) for one in words if len(one) == 2]
    pairs = pairwise(told)
    return [(new[1] - old[1]) * 1000 for old, new in pairs if old[0] == "ended"]


async def flipped(rig: Rig, rounds: int) -> list[float]:
    """Outages of the module's flips."""

    def wants(image: str) -> System:
        return connect(rig.target(image, f"digest of {image}", SystemSettings(scratch_mb=16)))

    async with rig.served():
        one = wants("a")
        await stage(one)
        await start(one)
        for number in range(rounds):
            one = wants("ba"[number % 2])
            await stage(one)
            await flip(one)
        await stop(one)
    return outages_ms(one.home.output)


def swapped(rig: Rig, rounds: int) -> list[float]:
    """Outages of the script's swaps."""
    folder = rig.folder / "bare"
    for name in ("root", "scratch", "lower", "jobs"):
        (folder / name).mkdir(parents=True)
    manifest = rig.store.manifest("a")
    assert manifest is not None
    around = SystemSurroundings("bare", folder / "jobs", {})
    said = configuration(manifest, folder / "root", around, f"/haptera/{rig.folder.name}")
    (folder / "config.json").write_text(json.dumps(said))
    for number in range(rounds + 1):
        image = rig.store.manifest("ab"[number % 2])
        assert image is not None
        artefact = str(rig.store.artefact(image.digest))
        subprocess.run(["sh", "-c", BARE, "sh", str(folder), artefact, str(number)], check=True)
    ending = 'cd "$1"; runc --root state delete --force box; umount root scratch lower'
    subprocess.run(["sh", "-c", ending, "sh", str(folder)], check=True)
    return outages_ms(folder / "output.log")


async def delivered_s(rig: Rig) -> tuple[float, float]:
    """From the first request until the last of all nodes has all of it: haptera's way, and curl."""
    manifest = rig.keep("big", os.urandom(ARTEFACT_BYTES))
    rig.wanted = ["big"]
    with multiprocessing.get_context("fork").Pool(NODES) as nodes:
        async with rig.served() as parent:
            orders = [(parent, rig.folder / f"cache{node}", manifest) for node in range(NODES)]
            begun = time.monotonic()
            await asyncio.to_thread(nodes.starmap, fetched, orders, 1)
            ours = time.monotonic() - begun
            begun = time.monotonic()
            address = (
                f"https://{parent.uplink.host}:{parent.uplink.port}/artefacts/{manifest.digest}"
            )
            words = ("curl", "-sfk", "-E", str(rig.identity), address, "-o")
            each = [
                await asyncio.create_subprocess_exec(*words, str(rig.folder / f"curl{node}"))
                for node in range(NODES)
            ]
            if any(await asyncio.gather(*(one.wait() for one in each))):
                raise SystemExit("a curl failed")
            return ours, time.monotonic() - begun


def fetched(parent: Parent, cache: Path, manifest: ImageManifest) -> None:
    """One node has the artefact."""
    ArtefactSource(parent, cache).artefact(manifest)


def told(name: str, outages: list[float]) -> float:
    """Print the distribution; returns its median."""
    p50 = statistics.median(outages)
    print(f"{name}: p50 {p50:.0f} ms, max {max(outages):.0f} ms, of {len(outages)}")
    return p50


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    tree.own_mounts()
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(Path(folder))
        for name in ("a", "b"):
            root = a_root(rig.folder / name, f"# {name}\n{INIT}")
            rig.keep(name, squashed(root), ("/init",))
        print(f"{platform.machine()}, Linux {platform.release()}")
        flips = told("flip of the module", asyncio.run(flipped(rig, rounds)))
        swaps = told("bare script", swapped(rig, rounds))
        ours, curls = asyncio.run(delivered_s(rig))
    print(f"ratio: 1/{swaps / flips:.1f}" if flips else "ratio: below the clock's 10 ms")
    size = f"{NODES} nodes, {ARTEFACT_BYTES >> 20} MiB each"
    print(f"{size}: fetched and verified {ours:.2f} s, curl {curls:.2f} s, {ours / curls:.1f}")


if __name__ == "__main__":
    main()
