"""A module whose code changes while it serves: reloaded, of a wrong version, or one that blocks."""

import json

import pytest

from tests.cli.rig import client_of, served, typed
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(480)]

SITE = """\
cluster: lamps
nodes: {l1: {platform: lamp}}
desired: {l1: {power: on}}
modules: {lamp: {place: "lamp:module", context: parent}}
"""
LAMP = """\
import time

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module

module = Module("lamp", connect=lambda target: target, context=PARENT, version="VERSION")
power = module.serves(node.power)


@power.look(outcomes=(Power.ON,), every_s=0.2)
def look(target):
    draft = target.run_dir / "draft-VERSION"
    draft.write_text("VERSION")
    draft.replace(target.run_dir / "serving")
    return Power.ON
"""
BLOCKING = LAMP.replace("def look(target):", "async def look(target):\n    time.sleep(3)")


def test_code_that_changes_is_loaded_when_a_person_says_so_and_never_of_a_wrong_version(tmp_path):
    def install(version, code=LAMP):
        # No two are alike in size, by which Python tells whether it has compiled one already.
        text = code.replace("VERSION", version)
        (tmp_path / "lamp.py").write_text(text + f"\n# {'x' * int(version)}\n")

    def type_in(*words):
        return typed(*words, folder=tmp_path, client=client_of(tmp_path))

    def serving():
        return [one.read_text() for one in tmp_path.rglob("serving")]

    def serves(version):
        wait_for(lambda: serving() == [version])
        wait_for(lambda: "is as desired" in type_in("why", "module:lamp")[1])

    (tmp_path / "site.yaml").write_text(SITE)
    install("1")
    with served(tmp_path, "--site", tmp_path / "site.yaml"):
        serves("1")
        install("2")
        assert type_in("module", "reload", "lamp", "-m", "new code")[0] == 0
        serves("2")
        assert "new code" in type_in("history", "module:lamp")[1]
        assert type_in("module", "reload", "lamb")[0] == 1

        install("3")
        assert type_in("set", "module:lamp", "version=4")[0] == 0
        wait_for(lambda: "version 4 is desired, and version 3" in type_in("why", "module:lamp")[1])
        assert serving() == ["2"]
        assert type_in("unset", "module:lamp", "version")[0] == 0
        serves("3")

        install("5", BLOCKING)
        assert type_in("module", "reload", "module:lamp")[0] == 0
        found = wait_for(lambda: "look blocks the event loop" in (w := why(type_in)) and w)
        assert "look blocks the event loop at lamp.py:13, for " in found
        assert "time.sleep(3)" in type_in("logs", "module:lamp")[1]


def why(type_in):
    (told,) = json.loads(type_in("why", "module:lamp", "-o", "json")[1])
    return told.get("why") or ""
