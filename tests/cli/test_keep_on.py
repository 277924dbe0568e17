"""A site's own controller in a real lab: a node whose BMC refuses is replaced by a spare."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.cli.rig import lab, typed
from tests.lab.rig import ROOT, wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow]


def powered(folder):
    """The nodes that got a power command which took effect, by their BMCs' own files."""
    files = sorted((folder / ".haptera" / "nodes").glob("*/bmc/commands.jsonl"))
    rows = {file.parts[-3]: map(json.loads, file.read_text().splitlines()) for file in files}
    return [name for name, some in rows.items() if any("effect" in row for row in some)]


def views(folder):
    code, out, _ = typed("get", "node", "-o", "json", folder=folder)
    return {one["name"]: one for one in json.loads(out)} if code == 0 else {}


def wanted(folder):
    return [name for name, one in views(folder).items() if "power" in one["desired"]]


def owners(folder):
    return {held["owner"] for one in views(folder).values() for held in one["desired"].values()}


def process_of_the_controller(cluster):
    """Its pid, among all that descends from the lab of this cluster."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            ours = f"HAPTERA_LAB={cluster}".encode() in (comm.parent / "environ").read_bytes()
            if comm.read_text() == "control keep-on\n" and ours:
                return int(comm.parent.name)
        except OSError:
            continue  # gone, or another user's
    return None


def test_a_node_whose_bmc_refuses_is_replaced_by_a_spare(tmp_path):
    for name in ("site.yaml", "keep_on.py"):
        shutil.copy(ROOT / "examples" / "keep_on" / name, tmp_path)
    with lab(tmp_path):
        wait_for(lambda: wanted(tmp_path) == ["n1", "n3", "n4"])
        wait_for(lambda: typed("status", "--check", folder=tmp_path)[0] == 0)
        assert powered(tmp_path) == ["n1", "n3", "n4"]
        assert owners(tmp_path) == {"controller:keep-on"}

        # Killed, it is there again, and changes nothing of what is so.
        cluster = (tmp_path / ".haptera" / "lab" / "cluster").read_text().strip()
        first = wait_for(lambda: process_of_the_controller(cluster))
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: process_of_the_controller(cluster) not in (None, first))
        wait_for(lambda: typed("status", "--check", folder=tmp_path)[0] == 0)
        assert powered(tmp_path) == wanted(tmp_path) == ["n1", "n3", "n4"]
