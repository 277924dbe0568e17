"""A parent is killed while a node is drained, or while one process of a module replaces another."""

import json
import os
import signal
import time

import pytest

from tests.cli.rig import client_of, served, typed
from tests.kills.processes import lives, wait_for

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.campaign,
    pytest.mark.timeout(300),
]

WITHIN_S = 60
WEEK_S = 7 * 86_400
SITE = """\
cluster: plugs
nodes: {p1: {platform: plug, has_agent: never}}
desired: {p1: {power: off}}
modules: {plug: {place: "plug:module", context: parent}}
"""
PLUG = """\
import os
import time

from haptera.kinds import node
from haptera.kinds.node import Busy, Power
from haptera.sdk import PARENT, Draining, Module

module = Module("plug", connect=lambda target: target, context=PARENT)
busy, power = module.serves(node.busy), module.serves(node.power)


def note(target, text):
    with (target.run_dir / "asked").open("a") as file:
        file.write(f"{text}\\n")


@busy.look(outcomes=(Busy.FREE,), every_s=0.2)
def look_busy(target):
    return Busy.FREE


@power.look(outcomes=(Power.OFF, Power.ON), every_s=0.2)
def look_power(target):
    return Power.OFF if (target.run_dir / "off").exists() else Power.ON


@power.step(Power.ON, Power.OFF, within_s=30, disruptive=True)
def switch_off(target):
    note(target, f"switch off CODE {os.getpid()}")
    while (target.run_dir / "stuck").exists():
        time.sleep(0.05)
    note(target, "switched off by CODE")
    (target.run_dir / "off").touch()


@module.hold
def hold(target):
    note(target, "hold")
    if (target.run_dir / "jobs").exists():
        raise Draining("1 job runs")


@module.release
def release(target):
    note(target, "release")
"""


class Site:
    """A parent's directory, and what its module was asked, as that itself wrote down."""

    def __init__(self, home):
        self.home = home
        self.run_dir = home / ".haptera/modules/plug"
        self.run_dir.mkdir(parents=True)
        (home / "site.yaml").write_text(SITE)
        self.install("one")

    def install(self, code):
        (self.home / "plug.py").write_text(PLUG.replace("CODE", code))

    def served(self, ending=signal.SIGINT):
        return served(self.home, "--site", self.home / "site.yaml", ending=ending)

    def type(self, *words):
        return typed(*words, folder=self.home, client=client_of(self.home))

    def asked(self):
        path = self.run_dir / "asked"
        return path.read_text().splitlines() if path.exists() else []

    def why(self):
        (told,) = json.loads(self.type("why", "p1", "-o", "json")[1])
        return told.get("why") or ""

    def so(self, find):
        return wait_for("what the module was asked, and why", find, WITHIN_S)

    def says(self, text):
        self.so(lambda: text in self.why())

    def begun(self, code):
        """The process in which the step of this code began."""
        pids = [one.split()[-1] for one in self.asked() if one.startswith(f"switch off {code}")]
        return int(pids[-1]) if pids else None


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_a_node_is_drained_on_by_the_parent_after_a_killed_one(site):
    (site.run_dir / "jobs").touch()
    with site.served(signal.SIGKILL):
        site.says("p1 is being drained: plug: 1 job runs")
    before = len(site.asked())
    with site.served():
        site.so(lambda: len(site.asked()) > before)
        site.says("p1 is being drained: plug: 1 job runs")
        assert set(site.asked()) == {"hold"}
        (site.run_dir / "jobs").unlink()
        site.so(lambda: site.asked()[-1] == "release")
        done = [one.partition(" one")[0] for one in site.asked() if one != "hold"]
        assert done == ["switch off", "switched off by", "release"]


def test_a_node_that_rests_from_a_week_of_being_drained_is_left_alone_after_a_kill(site):
    (site.run_dir / "jobs").touch()
    with site.served(signal.SIGKILL):
        site.so((site.run_dir / "draining/p1").exists)
        os.utime(site.run_dir / "draining/p1", (0, time.time() - WEEK_S))
        site.says("it was drained for 7 d without success")
        site.so(lambda: site.asked()[-1] == "release")
    before = site.asked()
    with site.served():
        site.says("it was drained for 7 d without success")
        site.so(lambda: len(site.asked()) > len(before))
        assert site.asked() == [*before, "release"]


def test_a_step_of_the_process_that_is_replaced_ends_with_a_killed_parent_and_is_done_once(site):
    (site.run_dir / "stuck").touch()
    with site.served(signal.SIGKILL):
        first = site.so(lambda: site.begun("one"))
        # Another size, by which Python tells whether it has compiled it already.
        site.install("another")
        assert site.type("module", "reload", "plug")[0] == 0
        site.so(lambda: "is as desired" in site.type("why", "module:plug")[1])
        assert lives(first)  # it finishes its call
    site.so(lambda: not lives(first))
    with site.served():
        # Not before the time of the first is over: nobody else knows that it is dead.
        assert lives(site.so(lambda: site.begun("another")))
        (site.run_dir / "stuck").unlink()
        site.so(lambda: site.asked()[-1] == "release")
        done = [one for one in site.asked() if one.startswith("switched")]
        assert done == ["switched off by another"]
