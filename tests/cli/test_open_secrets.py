"""A secret in plain text: refused by all that could write it down, and found nowhere after."""

import json
import subprocess
from http import HTTPStatus

import pytest

from haptera.cli.main import OK, REFUSED
from haptera.client import Client, RefusedError, calls, find
from haptera.model.declared.secrets import SECRET_DO
from haptera.rest.schemas import EntityPatch
from tests.cli.rig import client_of, command, environment, served, told
from tests.cli.rig import typed as type_in
from tests.lab.rig import WAIT_S_MAX
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.slow]

SECRET = "hunter-2-of-strips"
STRIP = '''\
"""An outlet strip that wants a password."""

from dataclasses import dataclass

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module, Secret


@dataclass(frozen=True)
class Settings:
    password: Secret | None = None


def connect(target):
    return target


module = Module("strip", connect=connect, context=PARENT, settings=Settings)
power = module.serves(node.power)


@power.look(every_s=1, outcomes=(Power.OFF, Power.ON))
async def look(target):
    return Power.OFF
'''
SITE = """\
cluster: small
nodes: {n1: }
modules:
  strip:
    place: strip:module
    context: parent
"""
OPEN = f"{SITE}    settings:\n      password: {SECRET}\n"
AUDIT = ["history", "--audit"]
WHERE = "open.yaml:8:7"
WHAT = "the setting 'password' of strip is a secret, given in clear text"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "strip.py").write_text(STRIP)
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "open.yaml").write_text(OPEN)
    return tmp_path


def test_a_secret_is_refused_wherever_it_could_be_written(folder):
    def typed(*words):
        return type_in(*words, folder=folder, client=client_of(folder))

    refused = (REFUSED, "", told(WHAT, where=WHERE, do=SECRET_DO))
    code, out, errors = typed("check", "open.yaml")
    assert (code, errors) == (REFUSED, "")
    assert out.startswith(f"error: module:strip: {WHAT} [open-secret]\n  {WHERE}\n")
    with served(folder, "--site", folder / "site.yaml", address=f"{NETWORK}.47.1"):
        assert typed("plan", "open.yaml", "--save", "open.plan") == refused
        assert typed("apply", "open.yaml") == refused
        assert typed("diff", "open.yaml") == (2, *refused[1:])
        settings = json.dumps({"password": SECRET})
        text = f"nothing was written: module:strip: the setting 'password' is a secret; {SECRET_DO}"
        do = "fix the cause, then try again"
        assert typed("set", "module:strip", f"settings={settings}") == (
            REFUSED,
            "",
            told(text, do=do),
        )
        assert statuses(client_of(folder), {"settings": settings}) == [HTTPStatus(422)] * 3
        shown = [typed(*words)[1] for words in (AUDIT, ["export"], ["get", "module"])]
        assert not [one for one in shown if SECRET in one]
        named = json.dumps({"password": {"secret": "strip"}})
        assert typed("set", "module:strip", f"settings={named}")[0] == OK
    assert not (folder / "open.plan").exists()
    assert holding(folder) == ["open.yaml"]


def statuses(client, desired):
    """How the API answers a patch, one of many, and one that is only planned."""
    with Client(find(client).access) as asker:
        with pytest.raises(RefusedError) as refused:
            asker.ask(calls.desire("module:strip", desired))
        patch = [EntityPatch("module:strip", desired)]
        (done,) = asker.ask(calls.patch(patch)).results
        (planned,) = asker.ask(calls.patch(patch, dry_run=True)).results
    return [refused.value.status, done.status, planned.status]


def test_a_parent_does_not_begin_with_a_secret(folder):
    named = ("--dir", folder, "--site", folder / "open.yaml")
    done = subprocess.run(
        command("serve", "--listen", f"{NETWORK}.47.1", *named),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=WAIT_S_MAX,
    )
    where = folder / WHERE
    assert done.returncode == REFUSED
    assert done.stderr.endswith(told(WHAT, where=str(where), do=SECRET_DO))
    assert SECRET not in done.stdout + done.stderr
    assert holding(folder) == ["open.yaml"]


def test_a_site_whose_module_cannot_be_asked_is_not_said_to_be_right(folder):
    (folder / "strip.py").write_text("raise SystemExit(3)\n")
    code, out, errors = type_in("check", "open.yaml", folder=folder)
    assert (code, out) == (REFUSED, "")
    assert errors.startswith("error: module strip cannot be run: ")
    assert SECRET not in errors


def holding(folder):
    """The files in which the secret is: state, history and logs among them."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    found = [one for one in files if SECRET.encode() in one.read_bytes()]
    return [one.relative_to(folder).as_posix() for one in found]
