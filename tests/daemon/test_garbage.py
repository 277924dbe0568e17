"""A real parent of many nodes: no collection of Python's garbage looks at all of them."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.rig import client_of, command, typed
from tests.lab.rig import WAIT_S_MAX, wait_for
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.slow]

ADDRESS = f"{NETWORK}.44.1"
EMPTY = "cluster: large\n"
LARGE = EMPTY + 'nodes: {"rack[1-30]n[001-100]": {rack: "1"}}\n'
# What the modules of a parent are alone is more than twice that.
LOOKED_AT_MAX = 40_000


def test_taking_many_nodes_over_collects_only_what_is_new(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text(EMPTY)
    (tmp_path / "large.yaml").write_text(LARGE)
    serve = command("serve", "--dir", tmp_path, "--listen", ADDRESS, "--site", "empty.yaml")
    serve[serve.index("haptera")] = "tests.daemon.collected"
    client = client_of(tmp_path)
    path = os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH"))))
    with subprocess.Popen(
        serve, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE
    ) as process:
        try:
            wait_for(client.exists)
            wait_for(lambda: typed("status", folder=tmp_path, client=client)[0] == 0)
            process.send_signal(signal.SIGUSR1)
            assert typed("apply", "large.yaml", folder=tmp_path, client=client)[0] == 0
        finally:
            process.send_signal(signal.SIGINT)
            told, _ = process.communicate(timeout=WAIT_S_MAX)
    assert 0 < int(told) < LOOKED_AT_MAX
