"""The inventory that Ansible has of a cluster, by contrib/ansible, from a parent's API."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from tests.api.serving import WITHIN_S, serving
from tests.cli.test_commands import point_at

pytestmark = pytest.mark.net
HERE = Path("contrib/ansible").resolve()
SCRIPT, PLAYBOOK = HERE / "haptera_inventory.py", HERE / "image-tree.yaml"
# What would run on the machine of whoever uses Ansible, if it were evaluated.
TEMPLATE = "{{ lookup('pipe', 'touch evaluated') }}"
N1, N2 = node_id("rack1n1"), node_id("rack1n2")

ansible = pytest.mark.skipif(shutil.which("ansible") is None, reason="Ansible is not installed")


@pytest.fixture
def parent(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    attributes = {"address": "127.0.0.9", "groups": "compute,gpu-a", "rack": "r/1"}
    with serving(
        Declare(N1, attributes, "site"),
        Declare(N2, {"address": TEMPLATE, "groups": "compute"}, "site"),
        SetDesired(N1, "power", "on", "site"),
    ) as one:
        point_at(one.url, "read-token", monkeypatch, tmp_path)
        yield one


def asked(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False)


def unsafe(**texts):
    return {name: {"__ansible_unsafe": text} for name, text in texts.items()}


def test_nodes_are_in_groups_and_what_is_known_of_them_is_never_a_template(parent):
    told = json.loads(asked(SCRIPT, "--list").stdout)
    groups = {name: one["hosts"] for name, one in told.items() if name != "_meta"}
    assert groups == {
        "all": ["rack1n1", "rack1n2"],
        "compute": ["rack1n1", "rack1n2"],
        "gpu_a": ["rack1n1"],
        "rack_r_1": ["rack1n1"],
        "condition_converged": ["rack1n1"],
        "condition_idle": ["rack1n2"],
    }
    hosts = told["_meta"]["hostvars"]
    assert hosts["rack1n2"] == {
        **unsafe(ansible_host=TEMPLATE, haptera_condition="idle"),
        "haptera_attributes": unsafe(address=TEMPLATE, groups="compute"),
        "haptera_desired": {},
        "haptera_observed": {},
    }
    assert hosts["rack1n1"]["haptera_desired"] == unsafe(power="on")


def test_without_a_parent_there_is_no_inventory_instead_of_an_empty_one(parent, monkeypatch):
    monkeypatch.setenv("HAPTERA_CLIENT", "nowhere.json")
    done = asked(SCRIPT, "--list")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no client file" in done.stderr
    assert done.stderr.endswith("no inventory\n")


@ansible
@pytest.mark.campaign
def test_ansible_takes_the_inventory_and_evaluates_nothing_of_it(parent):
    words = ("ansible", "-i", SCRIPT, "compute", "-m", "debug", "-a", "var=haptera_attributes")
    done = asked(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("SUCCESS") == 2
    assert "lookup(" in done.stdout
    asked("ansible", "-i", SCRIPT, "rack1n2", "-m", "debug", "-a", "msg='{{ ansible_host }}'")
    assert not Path("evaluated").exists()
    assert asked("ansible-playbook", "--syntax-check", "-i", "localhost,", PLAYBOOK).returncode == 0
