"""A parent and a module of which one device in four hangs, in a thread that cannot be ended."""

import json

import pytest

from tests.cli.rig import client_of, served, typed
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(240)]

# Threads that hang are more than twice the calls at once; looks in line for all that hang take
# longer than a reading lives.
SITE = """\
cluster: hanging
modules:
  plugs: {place: "plugs:module", context: parent}
nodes:
  "n[1-24]": {platform: plugs, has_agent: never, jobs: none}
desired:
  "n[1-24]": {power: "on"}
"""
PLUGS = '''\
"""Plugs that are off until they are switched; each fourth takes a question and says nothing."""

import threading

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module

AT = {node.platform: "plugs"}
module = Module("plugs", connect=lambda target: target, where=AT, context=PARENT, at_once=2)
power = module.serves(node.power)
on = set()


@power.look(every_s=1, within_s=2, outcomes=(Power.OFF, Power.ON))
def look(target):
    if int(target.name[1:]) % 4 == 0:
        threading.Event().wait()
    return Power.ON if target.name in on else Power.OFF


@power.step(Power.OFF, Power.ON, within_s=5, late_s=1)
def switch_on(target):
    on.add(target.name)


@power.step(Power.ON, Power.OFF, within_s=5, late_s=1)
def switch_off(target):
    on.discard(target.name)
'''
HEALTHY = {f"node:n{number}" for number in range(1, 25) if number % 4}


def test_nodes_that_answer_converge_though_more_hang_than_the_module_takes_calls(tmp_path):
    (tmp_path / "plugs.py").write_text(PLUGS)
    (tmp_path / "site.yaml").write_text(SITE)

    def converged():
        words = ("get", "node", "-o", "json")
        shown = json.loads(typed(*words, folder=tmp_path, client=client_of(tmp_path))[1])
        return {one["entity"] for one in shown if one["condition"] == "converged"}

    with served(tmp_path, "--site", tmp_path / "site.yaml"):
        wait_for(lambda: converged() == HEALTHY)
