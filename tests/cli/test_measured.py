"""Numbers of a real lab: measured on a node and at the parent, asked for as operators do."""

import json

import pytest

from tests.cli.rig import client_of, lab, typed
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(480)]

SITE = """\
cluster: measured
nodes:
  "n[1-2]": {platform: labnode, address: "127.{x}.1.{index}", bmc: "127.{x}.2.{index}:4280"}
desired:
  n1: {power: on, agent: up}
modules:
  labnode: {}
  here: {place: "meters:here", context: self}
  there: {place: "meters:there", context: parent}
"""
METERS = '''\
"""A meter on each node, and one at the parent, whose third round fails."""

from haptera.sdk import PARENT, Attribute, Measured, Module, Reading

inlet = Reading("node", "temp.inlet", unit="°C", low=-60, high=150)
used = Reading("node", "disk.used", unit="bytes", items_max=4, low=0)
watts = Reading("node", "power.watts", unit="W", low=0, high=10_000)
platform = Attribute("node", "platform")

here = Module("here", connect=lambda target: target, where={platform: "labnode"})
there = Module("there", connect=lambda target: target.name, context=PARENT)


@here.sampler(inlet, used, every_s=1)
def sensors(target) -> Measured:
    return {inlet: 36.5, used.series("/my disk"): 3e9, used.series("/none"): None}


@there.sampler(watts, every_s=1)
def meter(name) -> Measured:
    return {watts: float("nan") if name == "n2" else 120.0}
'''


def test_what_is_measured_in_a_lab_is_told_as_operators_ask_for_it(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "meters.py").write_text(METERS)
    with lab(tmp_path):
        client = client_of(tmp_path)

        def asked(*words):
            code, out, err = typed("get", *words, folder=tmp_path, client=client)
            assert (code, err) == (0, ""), err
            return out

        def hot():
            words = ("get", "-o", "name", "node:* and temp.inlet>35 and power.watts>1")
            _, out, _ = typed(*words, folder=tmp_path, client=client)
            return out == "node:n1\n"

        wait_for(client.exists)
        wait_for(hot)
        wait_for(lambda: "temp.inlet" in asked("node:n1", "-o", "wide"))
        wide = asked("node:n1", "-o", "wide").split("SERIES")[1]
        rows = [line.split()[:3] for line in wide.splitlines()[1:]]
        assert rows == [
            ["disk.used[/my_disk]", "3.00G", "bytes"],
            ["power.watts", "120", "W"],
            ["temp.inlet", "36.5", "°C"],
        ]
        told = json.loads(asked("node:n1", "--samples", "temp.inlet", "--last", "5m", "-o", "json"))
        assert {point["mean"] for point in told["points"]} == {36.5}
        assert (told["unit"], told["entity"]) == ("°C", "node:n1")
        shown = asked("node:n1", "--samples", "temp.inlet").splitlines()
        assert shown[0].startswith("temp.inlet of node:n1 in 1 h: last 36.5 °C, lowest 36.5 °C")
        assert asked("node:*", "--samples", "power.watts").splitlines()[1].split()[0] == "node:n1"
        assert not (tmp_path / ".haptera" / "parent" / "log" / "there.log").read_text()
