"""A module of a site's own runs at a real parent, and reaches nothing of what is the parent's."""

import json

import pytest

from haptera.runtime.processes.confinement.confinement import landlock_version
from tests.cli.rig import OTHER, SITE, served
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow]

SPY = """\
import json
import socket
from pathlib import Path

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module, Target

def connect(target: Target) -> Target:
    return target

module = Module("spy", connect=connect, context=PARENT)
power = module.serves(node.power)
place = Path("HOME/.haptera")

@power.look(every_s=30, outcomes=(Power.OFF, Power.ON))
async def look(target: Target) -> Power:
    told = {}
    for name in ("parent/ca.key", "parent/state.db", "client.json", "modules/other"):
        try:
            (place / name).read_bytes()
            told[name] = "read"
        except OSError as error:
            told[name] = type(error).__name__
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(place / "api.sock"))
        link.sendall(b"GET /v1/tokens HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        told["asked"] = link.recv(64).split()[1].decode()
    told["folder"] = str(target.run_dir)
    draft = target.run_dir / "draft"
    draft.write_text(json.dumps(told))
    draft.rename(target.run_dir / "told")
    return Power.ON
"""


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_a_module_with_the_parents_user_reads_neither_its_key_nor_its_state(tmp_path):
    (tmp_path / "spying.py").write_text(SPY.replace("HOME", str(tmp_path)))
    modules = '{spy: {place: "spying:module", context: parent}}'
    (tmp_path / "site.yaml").write_text(SITE.replace("[service]", modules))
    told = tmp_path / ".haptera" / "modules" / "spy" / "told"
    told.parent.mkdir(parents=True)
    (told.parents[1] / "other").write_text("another module's")
    options = ("--site", tmp_path / "site.yaml", "--keep-user", "spy")
    with served(tmp_path, *options, address=OTHER):
        wait_for(told.exists)
    assert json.loads(told.read_text()) == {
        "parent/ca.key": "PermissionError",
        "parent/state.db": "PermissionError",
        "client.json": "PermissionError",
        "modules/other": "PermissionError",
        "asked": "403",
        "folder": str(told.parent),
    }
    assert "reach this daemon's files" in (tmp_path / "serve.out").read_text()
