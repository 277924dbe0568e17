"""Three levels of real processes at 30 % loss of datagrams: which agents are taken for lost.

    unshare --net sh -c 'ip link set lo up && exec python -m tests.cli.lossy_tree DIRECTORY SECONDS'

A root, two parents below it and fifty agents below these. BMCs, which are asked over TCP, are left
alone: where a look at the power fails, nothing is known of the agent either, though it is heard.
What each parent took for lost is read from its own record of what happened, over REST, once the
network is whole again.
"""

import json
import re
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from haptera.runtime.clock import wall_s
from tests.cli.rig import client_of, command, environment, lab, typed
from tests.lab.rig import wait_for

# Of the parents between, by which their packets are known from others of this machine.
GROUP = 4711
MIDDLE = {"m1": "127.{}.0.11", "m2": "127.{}.0.12"}
SITE = """\
cluster: lossy
nodes:
  m[1-2]: {address: "127.{x}.0.1{1}", has_agent: "never"}
  rack[1-2]n[01-25]:
    {platform: labnode, rack: "r{1}", address: "127.{x}.1.{index}", bmc: "127.{x}.2.{index}:4280"}
  rack1n[01-25]: {parents: "m1, m2"}
  rack2n[01-25]: {parents: "m2, m1"}
services: {idle: {command: "sleep 100000"}}
desired:
  rack[1-2]n[01-25]: {power: on, agent: up}
  idle@rack[1-2]n[01-25]: {run: running}
"""
LOSS = """\
table inet loss {
  chain input {
    type filter hook input priority 0;
    meta l4proto udp counter
    meta l4proto udp numgen random mod 100 < 30 counter drop
  }
}
"""
NODES = 50
# How long all may take to be as desired, at first.
SETTLED_WITHIN_S = 150


def settled(folder: Path, client: Path, nodes: int = NODES) -> bool:
    """Whether all are as desired, as a parent has it."""
    code, out, _ = typed("get", "service", "-o", "json", folder=folder, client=client)
    views = json.loads(out) if code == 0 else []
    return len(views) == nodes and all(one["condition"] == "converged" for one in views)


def await_settled(folder: Path, root: Path) -> None:
    until = time.monotonic() + SETTLED_WITHIN_S
    while not settled(folder, root):
        assert time.monotonic() < until, "all is as desired"
        time.sleep(1)


def gone(client: Path, since_s: float) -> list[str]:
    """The agents that a parent no longer took for there, since then."""
    access = json.loads(client.read_text())
    request = urllib.request.Request(
        f"{access['url']}/v1/happenings?select=node:*&limit=10000",
        headers={"Authorization": f"Bearer {access['token']}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        told = json.load(answer)["happened"]
    return [
        f"{one['entity']}: {one['name']}={one['value']}"
        for one in told
        if one["at_s"] >= since_s and one["name"] == "agent" and one["value"] != "up"
    ]


def counted() -> tuple[int, int]:
    """How many datagrams there were, and how many of them were dropped."""
    words = ("nft", "list", "table", "inet", "loss")
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    passed, dropped = re.findall(r"counter packets (\d+)", told)
    return int(passed), int(dropped)


def start_below(stack: ExitStack, folder: Path, root: Path) -> list[Path]:
    """The parents between; their client files."""
    octet = json.loads(root.read_text())["url"].split(".")[1]
    for name, address in MIDDLE.items():
        (folder / name).mkdir(mode=0o700)
        log = stack.enter_context((folder / f"{name}.log").open("w"))
        words = ("serve", "--dir", folder / name, "--listen", address.format(octet))
        beside = ("--name", name, "--hello", "1", "--above", root)
        process = subprocess.Popen(
            command(*words, *beside), stderr=log, env=environment(), group=GROUP
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
    return [client_of(folder / name) for name in MIDDLE]


def main(folder: Path, seconds: float) -> None:
    (folder / "site.yaml").write_text(SITE)
    with lab(folder), ExitStack() as below:
        root = client_of(folder)
        wait_for(root.exists)
        parents = start_below(below, folder, root)
        await_settled(folder, root)
        since_s = wall_s()
        subprocess.run(["nft", "-f", "-"], input=LOSS, text=True, check=True)
        time.sleep(seconds)
        passed, dropped = counted()
        subprocess.run(["nft", "delete", "table", "inet", "loss"], check=True)
        sys.stdout.write(f"{dropped} of {passed} datagrams were lost\n")
        assert 0.28 < dropped / passed < 0.32
        lost = {str(one): gone(one, since_s) for one in (root, *parents)}
        sys.stdout.write(json.dumps(lost, indent=1) + "\n")
        await_settled(folder, root)
    assert not any(lost.values()), lost


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
