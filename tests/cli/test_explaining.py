"""`why`, `chain` and `logs` in a real lab: what an agent says and has, a person reads at once."""

import json

import pytest

from haptera.runtime import clock
from tests.cli.rig import lab, typed
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow]

MINUTE_NS = 60_000_000_000
SITE = """\
cluster: tiny
nodes:
  n1: {platform: labnode, address: "127.{x}.1.1", bmc: "127.{x}.2.1:4280"}
  n2: {platform: leaky, rack: one}
services:
  bad: {command: "sh -c 'echo no licence; exit 3'"}
  absent: {command: /no/such/binary --now}
desired:
  n1: {power: on, agent: up}
  n2: {power: on}
  bad@n1: {run: running}
  absent@n1: {run: running}
modules:
  labnode: {}
  service: {}
  leaky: {place: "leaky:module", context: parent}
lab: {delay_ms: 10}
"""
# Its look reads a rack's number, and takes it that each has one.
LEAKY = """\
from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module

where = {node.platform: "leaky"}
module = Module("leaky", connect=lambda target: target, where=where, context=PARENT)


@module.serves(node.power).look(outcomes=(Power.OFF, Power.ON))
async def look(target):
    return Power.ON if int(target.attributes["rack"]) else Power.OFF
"""


@pytest.fixture(scope="module")
def begun_ns():
    return clock.now_ns()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, begun_ns):
    """Where a lab runs with services that cannot, and a module with a bug."""
    tmp_path = tmp_path_factory.mktemp("lab")
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "leaky.py").write_text(LEAKY)
    with lab(tmp_path) as process:
        process.stdout.readline()
        yield tmp_path


@pytest.fixture
def says(folder):
    """What a command prints, once that has a text in it."""

    def once(*arguments, text):
        code, out, _ = typed(*arguments, folder=folder)
        return out if code == 0 and text in out else None

    return lambda *arguments, text: wait_for(lambda: once(*arguments, text=text))


def test_the_last_output_line_of_a_crashed_service_stands_in_why(says):
    why = says("why", "service:bad@n1", text="ended with status 3")
    assert why.endswith("run is failed: it ended with status 3: no licence\n")


def test_a_missing_binary_is_told_by_why_and_logs_in_the_words_of_the_spawn(says):
    told = "/no/such/binary: No such file or directory\n"
    why = says("why", "service:absent@n1", text="stuck")
    assert f"service.start: {told}" in why
    assert "  needs  the agent of n1, by service.start\n" in why
    assert says("logs", "service:absent@n1", text="binary") == told


def test_what_python_raises_in_a_look_stands_in_why_with_its_type_and_in_logs_whole(says, begun_ns):
    told = "ValueError: invalid literal for int() with base 10: 'one'\n"
    why = says("why", "node:n2", text="ValueError")
    assert f"leaky.look: {told}  needs  the parent, by leaky.look\n  again  in " in why
    assert why.endswith("; at once: haptera retry node:n2\n")
    log = says("logs", "module:leaky", text="ValueError")
    assert log.startswith("look of node:n2 failed:\nTraceback (most recent call last):\n")
    assert 'int(target.attributes["rack"])' in log
    # Once a minute, however often it is looked: at first each second.
    minutes = (clock.now_ns() - begun_ns) // MINUTE_NS
    assert (log.endswith(told), log.count("Traceback") <= 1 + minutes) == (True, True)


def test_a_service_that_cannot_run_is_explained_at_the_parent(folder, says):
    says("why", "service:bad@n1", text="ended with status 3")
    assert "  says   the agent of n1\n" in typed("why", "-v", "service:bad@n1", folder=folder)[1]
    tried = "  service.start: returned"  # after its age: above, it may be why all is stuck
    chain = says("chain", "service:bad@n1", text=tried)
    (line,) = [line for line in chain.splitlines() if tried in line][:1]
    assert line.startswith("  agent   ")
    assert line.endswith("but run is failed: it ended with status 3: no licence")
    # Empty while it is being started once more.
    assert says("logs", "service:bad@n1", text="licence") == "no licence\n"
    assert typed("logs", "module:service@n1", folder=folder)[0] == 0
    assert typed("logs", "module:labnode", folder=folder)[0] == 0
    code, out, _ = typed("why", "service:bad@n1", "-o", "json", folder=folder)
    (view,) = json.loads(out)
    assert (code, view["told_by"], view["unasked"]) == (0, "n1", None)
    assert view["agent"]["tried"][0]["part"] == "service.start"
