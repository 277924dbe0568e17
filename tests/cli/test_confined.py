"""Modules run at a real parent, and reach nothing of what is the parent's."""

import json
import os
import subprocess
import sys
import tarfile

import pytest

from haptera.runtime.processes.confinement.confinement import landlock_version
from tests.cli.rig import OTHER, SITE, client_of, command, served, typed
from tests.kills.processes import descendants
from tests.lab.rig import ROOT, wait_for
from tests.modules.image_rig import a_root, needs

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


BUILDING = """\
cluster: small
modules: [image]
desired: {"image:a": {state: built, recipe: "RECIPE"}}
"""
# Typed by root of the module's own namespaces, who may do there all that the module may.
INTRUDER = """\
cd HOME/.haptera
for one in parent/ca.key parent/state.db client.json; do
    cat $one > /dev/null 2>&1 && echo "read $one"
done
umount -l HOME/.haptera 2> /dev/null && echo "shown again"
mount -o remount,rw / 2> /dev/null && echo "wrote the machine's disk"
touch /etc/haptera-spy 2> /dev/null && echo "wrote beside"
ls /proc/PARENT/root > /dev/null 2>&1 && echo "read by proc"
for one in /dev/*; do [ -b $one ] && head -c 1 $one > /dev/null 2>&1 && echo "read $one"; done
ls parent parent/images/names
"""


@pytest.mark.campaign
@pytest.mark.skipif(os.geteuid() != 0, reason="buildah needs root here")
@needs("buildah", "mksquashfs", "nsenter")
def test_the_real_module_of_images_builds_and_reaches_none_of_the_parents_secrets(tmp_path):
    recipe = tmp_path / "recipe"
    recipe.mkdir()
    (recipe / "Dockerfile").write_text("FROM scratch\nCOPY hello /hello\n")
    (recipe / "hello").write_text("hello")
    (tmp_path / "site.yaml").write_text(BUILDING.replace("RECIPE", str(recipe)))
    manifest = tmp_path / ".haptera" / "parent" / "images" / "names" / "a.json"
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=OTHER) as parent:
        wait_for(manifest.exists)
        (module,) = [one.pid for one in descendants(parent.pid) if one.comm == "module image"]
        script = INTRUDER.replace("HOME", str(tmp_path)).replace("PARENT", str(parent.pid))
        inside = ["nsenter", "-t", str(module), "-U", "-m", "--preserve-credentials"]
        done = subprocess.run([*inside, "sh", "-c", script], capture_output=True, text=True)
        answered = typed("get", "image:a", folder=tmp_path, client=client_of(tmp_path))
        shown = typed(
            "get", "module:image", "-o", "wide", folder=tmp_path, client=client_of(tmp_path)
        )
    assert done.stdout.split() == ["parent:", "images", "parent/images/names:", "a.json"]
    assert "built" in answered[1]
    assert "needs namespaces" in shown[1]
    assert "to write" not in shown[1]


QUOTA = """\
cluster: small
modules:
  image: {settings: {quota_mb: 8}}
"""


@pytest.mark.campaign
@pytest.mark.skipif(os.geteuid() != 0, reason="buildah needs root here")
@needs("mksquashfs", "unsquashfs", "ldd")
def test_the_real_module_of_images_imports_a_root_within_its_quota_and_tells_two_apart(tmp_path):
    root = a_root(tmp_path / "root", "exit 0")
    (root / "sbin").mkdir(exist_ok=True)
    (root / "sbin/init").symlink_to("/init")
    (root / "etc/owned").write_text("by another")
    os.chown(root / "etc/owned", 7, 8)
    with tarfile.open(tmp_path / "root.tar.gz", "w:gz") as tar:
        tar.add(root, arcname=".")
    os.chown(root / "etc/owned", 9, 8)
    (tmp_path / "site.yaml").write_text(QUOTA)
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=OTHER):

        def said(*words):
            return typed("image", *words, folder=tmp_path, client=client_of(tmp_path))

        assert said("import", "a", tmp_path / "root.tar.gz")[0] == 0
        assert said("import", "b", root)[0] == 0
        differs = said("diff", "a", "b")
        (root / "large").write_bytes(os.urandom(9_000_000))
        refused = said("import", "c", root)
        removable = said("gc", "--dry-run")
    assert (differs[0], differs[1].splitlines()[0]) == (*(1, "~ /etc/owned (owner 7:8 -> 9:8)"),), (
        differs
    )
    assert (refused[0], "MB, all that is left of the quota" in refused[2]) == (1, True), refused
    assert removable[1].splitlines()[-1].endswith(" MB would be freed")


@pytest.mark.skipif(os.geteuid() != 0, reason="a plain user's modules are that user anyway")
def test_a_parent_whose_modules_would_reach_all_that_root_does_is_not_started(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "site.yaml").write_text(SITE)
    words = command("serve", "--dir", closed, "--site", closed / "site.yaml", "--listen", OTHER)
    without = [sys.executable, "-m", "tests.runtime.without_landlock"]
    done = subprocess.run([*without, *words], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "modules could access everything that root can: other users cannot read" in done.stderr
    assert "this kernel has no Landlock" in done.stderr
    assert "install Python and haptera where all users read them" in done.stderr
