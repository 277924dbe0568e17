"""Modules of one's own in a lab: one in Python on each node, one a command at the parent."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.rig import client_of, lab, typed
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(240)]

LAMP = Path(__file__).parents[1] / "runtime" / "lamp.py"
SITE = """\
cluster: own
nodes:
  n1: {platform: labnode, address: "127.{x}.1.1", bmc: "127.{x}.2.1:4280"}
  l1: {platform: lamp}
services: {web: }
desired:
  n1: {power: on, agent: up}
  l1: {power: on}
  web@n1: {run: running}
policies: [{for: l1, parts: lamp, attempts: 3}]
modules:
  labnode: {}
  lamp:
    exec: [PYTHON, -S, LAMP, parent]
    context: parent
    settings: {folder: FOLDER}
  filed: {place: "filed:module", context: self, settings: {word: here}}
lab: {delay_ms: 10}
"""
FILED = '''\
"""A service that is a file."""

from haptera.kinds import service
from haptera.kinds.service import Run
from haptera.sdk import Module

module = Module("filed", connect=lambda target: target)
run = module.serves(service.run)


@run.look(every_s=1, outcomes=(Run.STOPPED, Run.RUNNING))
async def look(target):
    return Run.RUNNING if (target.run_dir / "filed").exists() else Run.STOPPED


@run.step(Run.STOPPED, Run.RUNNING, within_s=5, late_s=1)
async def start(target):
    (target.run_dir / "filed").write_text(target.settings["word"])
'''


def test_a_site_names_modules_of_its_own_and_they_do_their_work(tmp_path):
    (tmp_path / "filed.py").write_text(FILED)
    (tmp_path / "lamps").mkdir()
    site = SITE.replace("PYTHON", json.dumps(sys.executable)).replace("LAMP", json.dumps(str(LAMP)))
    (tmp_path / "site.yaml").write_text(site.replace("FOLDER", str(tmp_path / "lamps")))

    def type_in(*words, given=""):
        return typed(*words, folder=tmp_path, client=client_of(tmp_path), given=given)

    assert type_in("site", "check", "--lab", "site.yaml")[0] == 0
    with lab(tmp_path):
        wait_for(lambda: type_in("status", "--check")[0] == 0)
        assert (tmp_path / "lamps" / "l1").read_text() == "on"
        (filed,) = (tmp_path / ".haptera").rglob("filed")
        assert filed.read_text() == "here"
        shown = {
            one["entity"]: one for one in json.loads(type_in("get", "module", "-o", "json")[1])
        }
        assert {name for name, one in shown.items() if one["condition"] == "converged"} == {
            "module:labnode",
            "module:lamp",
            "module:filed@n1",
        }
        assert type_in("set", "node:l1", "power=off", "--take")[0] == 0
        wait_for(lambda: (tmp_path / "lamps" / "l1").read_text() == "off")
        # What is in force names them too, and applies to nothing.
        exported = type_in("export")[1]
        assert '  filed: {place: "filed:module", context: self}\n' in exported
        assert type_in("diff", "-", given=exported) == (0, "", "")
