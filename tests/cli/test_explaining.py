"""`why`, `chain` and `logs` in a real lab: what an agent says and has, a person reads at once."""

import json
import signal
import subprocess

import pytest

from tests.cli.rig import command, environment, typed
from tests.lab.rig import WAIT_S_MAX, wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow]

SITE = """\
cluster: tiny
nodes:
  n1: {platform: labnode, address: "127.{x}.1.1", bmc: "127.{x}.2.1:4280"}
services:
  bad: {command: "sh -c 'echo no licence; exit 3'"}
desired:
  n1: {power: on, agent: up}
  bad@n1: {run: running}
lab: {delay_ms: 10}
"""


@pytest.fixture
def folder(tmp_path):
    """Where a lab runs with a service that cannot."""
    (tmp_path / "site.yaml").write_text(SITE)
    with subprocess.Popen(
        command("lab", "--dir", tmp_path, "--site", "site.yaml"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            process.stdout.readline()
            yield tmp_path
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=WAIT_S_MAX)


def test_a_service_that_cannot_run_is_explained_at_the_parent(folder):
    def says(*arguments, text):
        code, out, _ = typed(*arguments, folder=folder)
        return out if code == 0 and text in out else None

    wait_for(lambda: says("why", "service:bad@n1", text="ended with status 3"))
    assert "  says   the agent of n1\n" in typed("why", "-v", "service:bad@n1", folder=folder)[1]
    chain = wait_for(lambda: says("chain", "service:bad@n1", text="service.start: returned"))
    (line,) = [line for line in chain.splitlines() if "service.start: returned" in line][:1]
    assert line.startswith("  agent   ")
    assert line.endswith("but run is failed: it ended with status 3: no licence")
    assert typed("logs", "service:bad@n1", folder=folder)[:2] == (0, "no licence\n")
    assert typed("logs", "module:service@n1", folder=folder)[0] == 0
    assert typed("logs", "module:labnode", folder=folder)[0] == 0
    code, out, _ = typed("why", "service:bad@n1", "-o", "json", folder=folder)
    (view,) = json.loads(out)
    assert (code, view["told_by"], view["unasked"]) == (0, "n1", None)
    assert view["agent"]["tried"][0]["part"] == "service.start"
