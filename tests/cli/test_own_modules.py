"""Modules of one's own in a lab: one in Python on each node, one a command at the parent."""

import contextlib
import json
import sys
from pathlib import Path

import pytest

from haptera.runtime.processes.secrets import SecretStore
from tests.cli.rig import client_of, lab, typed
from tests.lab.rig import files_below, wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(480)]

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
    settings: {folder: FOLDER, key: {secret: "file:KEY"}, more: {secret: lamp}}
  filed: {place: "filed:module", context: self, settings: {word: {secret: word}}}
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


WORD, KEY = "hunter-2-for-nodes", "hunter-3-for-lamps"


# What waits for a secret is tried again by whoever brings it.
AGAIN = "tried again: module:lamp\n"


def allow_the_lamp(type_in, kept):
    """Its secret is for another module first, and then for it."""
    kept.put("lamp", b"for another")
    kept.allow("lamp", ["other"])
    assert type_in("secret", "set", "lamp", given=f"{WORD}\n") == (0, "", AGAIN)
    wait_for(lambda: "module:lamp may not use it" in type_in("why", "module:lamp")[1])
    assert type_in("secret", "allow", "lamp", "lamp") == (0, "", AGAIN)
    table = "SECRET  MODULES\nlamp    module:lamp\nword    *\n"
    assert type_in("secret", "list") == (0, table, "")
    assert json.loads(type_in("secret", "list", "-o", "json")[1]) == [
        {"name": "lamp", "users": ["module:lamp"]},
        {"name": "word", "users": None},
    ]


def test_a_site_names_modules_of_its_own_and_they_do_their_work(tmp_path, monkeypatch):
    (tmp_path / "filed.py").write_text(FILED)
    (tmp_path / "lamps").mkdir()
    monkeypatch.setenv("HAPTERA_SECRET_FILES", str(tmp_path))
    key = tmp_path / "lamp.key"
    key.write_text(KEY)
    key.chmod(0o600)
    words = {"PYTHON": sys.executable, "LAMP": LAMP, "FOLDER": tmp_path / "lamps", "KEY": key}
    site = SITE
    for word, path in words.items():
        site = site.replace(word, str(path))
    (tmp_path / "site.yaml").write_text(site)

    def type_in(*words, given=""):
        return typed(*words, folder=tmp_path, client=client_of(tmp_path), given=given)

    assert type_in("site", "check", "--lab", "site.yaml")[0] == 0
    # A secret can be there before the parent ever was.
    assert type_in("secret", "set", "word", given=f"{WORD}\n") == (0, "", "")
    with lab(tmp_path):
        # Nothing starts before its secret is there, and why says which is not.
        wait_for(lambda: "secret lamp: it is not set" in type_in("why", "module:lamp")[1])
        allow_the_lamp(type_in, SecretStore(tmp_path / ".haptera" / "parent"))
        wait_for(lambda: type_in("status", "--check")[0] == 0)
        assert (tmp_path / "lamps" / "l1").read_text() == "on"
        homes = files_below(tmp_path / ".haptera" / "nodes")
        (filed,) = (one for one in homes if one.parts[-2:] == ("filed", "filed"))
        assert filed.read_text() == WORD
        shown = json.loads(type_in("get", "module", "-o", "json")[1])
        assert {one["entity"] for one in shown if one["condition"] == "converged"} == {
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

        told = [exported, json.dumps(shown), type_in("history", "-o", "json")[1]]
        told += [type_in("logs", f"module:{one}")[1] for one in ("lamp", "filed@n1")]
        assert "begins with ['folder', 'key', 'more']" in told[-2]
        assert not [text for text in told if WORD in text or KEY in text]
        assert told_by_processes(tmp_path) == []
    assert {one.relative_to(tmp_path).as_posix() for one in holding(tmp_path)} == {
        "lamp.key",
        ".haptera/parent/secrets/lamp",
        ".haptera/parent/secrets/word",
        filed.relative_to(tmp_path).as_posix(),
    }


def holding(folder):
    """The files in which one of the secrets is: state, journals and logs among them."""
    for path in files_below(folder):
        if path.is_file() and {WORD, KEY} & set(_words(path.read_bytes())):
            yield path


def _words(content):
    return [one for one in (WORD, KEY) if one.encode() in content]


def told_by_processes(folder):
    """What a look at the processes of this lab shows of the secrets: arguments, environments."""
    shown = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            if str(folder).encode() in text or b"HAPTERA_LAB" in text:
                shown += _words(text)
    return shown
