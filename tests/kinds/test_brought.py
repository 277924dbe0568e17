"""Packages, really installed, bring kinds and modules; what is wrong with one is told."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.rig import client_of, served, typed
from tests.lab.rig import ROOT, WAIT_S_MAX, wait_for
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(480)]

ADDRESS = f"{NETWORK}.58.1"
SITE = """\
cluster: airy
nodes:
  "n[1-2]": {}
desired:
  "fan:left@n[1-2]": {spin: spinning}
modules:
  fans: {context: parent}
"""
BARE = "cluster: airy\nnodes: {'n[1-2]': {}}\nmodules: []\n"
OF_FANS = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "NAME"
version = "2"

[project.entry-points."haptera.GROUP"]
ENTRY
"""


LIT = """\
cluster: lit
nodes:
  "n[1-2]": {led.port: "{n}"}
desired:
  n1: {led.light: on}
  n2: {led.light: off}
modules:
  leds: {context: parent}
"""


@pytest.fixture(scope="module")
def leds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package that extends what a node is, installed in a folder of its own."""
    home = tmp_path_factory.mktemp("leds")
    shutil.copytree(ROOT / "examples" / "leds", home / "source")
    return installed(home / "source", home / "site-packages")


def test_a_package_adds_to_what_a_node_is(
    leds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(leds))
    site, client = tmp_path / "site.yaml", client_of(tmp_path)
    site.write_text(LIT)

    def type_in(*words: object) -> tuple[int, str, str]:
        return typed(*words, folder=tmp_path, client=client)

    def named(selector: str) -> list[str]:
        return [one["entity"] for one in json.loads(type_in("get", selector, "-o", "json")[1])]

    assert "extension led leds" in " ".join(type_in("module", "list")[1].split())
    assert type_in("check", site)[1] == "cluster lit: 2 nodes; nothing is wrong\n"
    with served(tmp_path, "--site", site, address=ADDRESS):
        wait_for(lambda: named("node:* and led.light=on and condition=converged") == ["node:n1"])
        assert named("led.port=2") == ["node:n2"]
        assert type_in("set", "node:n2", "led.light=on", "--take")[0] == 0
        wait_for(lambda: named("node:* and led.light=on") == ["node:n1", "node:n2"])
        code, _, error = type_in("get", "led.porch=2")
        assert (code != 0, "led.port" in error) == (True, True)


COOLED = """\
cluster: cooled
nodes:
  "n[1-4]": {}
entities:
  "coolant:r[1-3]": {address: "loop-{r}"}
desired:
  "coolant:r[1-2]": {state: running, litres_per_minute: 40}
modules:
  coolant: {context: parent}
"""


@pytest.fixture(scope="module")
def coolant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of a kind of the cluster, installed in a folder of its own."""
    home = tmp_path_factory.mktemp("coolant")
    shutil.copytree(ROOT / "examples" / "coolant", home / "source")
    return installed(home / "source", home / "site-packages")


def test_entities_of_the_cluster_have_names_attributes_and_settings_of_their_own(
    coolant: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(coolant))
    site, client = tmp_path / "site.yaml", client_of(tmp_path)
    site.write_text(COOLED)

    def type_in(*words: object) -> tuple[int, str, str]:
        return typed(*words, folder=tmp_path, client=client)

    def named(selector: str) -> list[str]:
        return [one["entity"] for one in json.loads(type_in("get", selector, "-o", "json")[1])]

    assert type_in("site", "check", site)[1] == (
        "cluster cooled: 3 coolants, 4 nodes; nothing is wrong\n"
    )
    assert type_in("module", "lint", "coolant") == (0, "nothing is wrong\n", "")
    with served(tmp_path, "--site", site, address=ADDRESS):
        both = ["coolant:r1", "coolant:r2"]
        wait_for(lambda: named("coolant:* and state=running and condition=converged") == both)
        assert named("coolant:r[1,3]") == ["coolant:r1", "coolant:r3"]
        assert named("address=loop-3") == ["coolant:r3"]
        (pump,) = tmp_path.rglob("loop-1")
        assert pump.read_text().endswith(" 40\n")
        assert type_in("set", "coolant:r1", "litres_per_minute=60", "--take")[0] == 0
        wait_for(lambda: pump.read_text().endswith(" 60\n"))
        wait_for(lambda: named("coolant:r1 and applied=current") == ["coolant:r1"])
        exported = type_in("export")[1]
        assert "  coolant:r1: {address: loop-1}\n" in exported
        refused = type_in("set", "coolant:r1", "address=x")
        assert "in a site file under `entities`" in refused[2]


OUTLET = '''\
"""Switches the power of nodes that are cooled: a file of this module's own for each."""

from coolant.extension import cooled
from coolant.kind import State

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module

module = Module("outlet", connect=lambda target: target.run_dir / target.name, context=PARENT)
power = module.serves(node.power)


@power.look(every_s=2, outcomes=(Power.OFF, Power.ON))
async def look(outlet) -> Power:
    return Power.ON if outlet.exists() else Power.OFF


@power.step(Power.OFF, Power.ON, within_s=5, requires={cooled: State.RUNNING})
async def switch_on(outlet) -> None:
    outlet.touch()
'''
DEPENDENT = """\
cluster: cooled
nodes: {"n[1-2]": {rack: "r{n}", jobs: none}}
desired:
  "n[1-2]": {power: on}
  "coolant:r1": {state: running, litres_per_minute: 40}
entities:
  "coolant:r[1-2]": {address: "loop-{r}"}
modules:
  coolant: {context: parent}
  outlet: {place: "outlet:module", context: parent}
"""


def test_a_step_of_a_node_waits_for_what_its_rack_has(
    coolant: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(coolant))
    site, client = tmp_path / "site.yaml", client_of(tmp_path)
    site.write_text(DEPENDENT)
    (tmp_path / "outlet.py").write_text(OUTLET)

    def type_in(*words: object) -> tuple[int, str, str]:
        return typed(*words, folder=tmp_path, client=client)

    def named(selector: str) -> list[str]:
        return [one["entity"] for one in json.loads(type_in("get", selector, "-o", "json")[1])]

    with served(tmp_path, "--site", site, address=ADDRESS):
        wait_for(lambda: named("node:* and power=on") == ["node:n1"])
        wait_for(lambda: named("node:* and condition=waiting") == ["node:n2"])
        why = type_in("why", "node:n2")[1]
        assert "waits for coolant[node.rack].state=running (coolant:r2)" in why
        assert type_in("set", "coolant:r2", "state=running", "litres_per_minute=9")[0] == 0
        wait_for(lambda: named("node:* and power=on") == ["node:n1", "node:n2"])


@pytest.fixture(scope="module")
def fans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the examples, installed in a folder of its own."""
    home = tmp_path_factory.mktemp("fans")
    shutil.copytree(ROOT / "examples" / "fans", home / "source")
    return installed(home / "source", home / "site-packages")


def test_a_site_names_the_kind_and_the_module_of_a_package(
    fans: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(fans))
    site, client = tmp_path / "site.yaml", client_of(tmp_path)
    site.write_text(SITE)

    def type_in(*words: object) -> tuple[int, str, str]:
        return typed(*words, folder=tmp_path, client=client)

    def spins() -> dict[str, str]:
        told = json.loads(type_in("get", "fan", "-o", "json")[1])
        return {one["entity"]: one["observed"]["spin"]["value"] for one in told}

    assert type_in("check", site)[1] == ("cluster airy: 2 fans, 2 nodes; nothing is wrong\n")
    assert type_in("module", "lint", "fans") == (0, "nothing is wrong\n", "")
    with served(tmp_path, "--site", site, address=ADDRESS):
        both = {"fan:left@n1": "spinning", "fan:left@n2": "spinning"}
        wait_for(lambda: spins() == both)
        assert type_in("set", "fan:left@n2", "spin=still", "--take")[0] == 0
        wait_for(lambda: spins() == {**both, "fan:left@n2": "still"})
        assert "\nfan:left@n2  " in type_in("get", "fan:* and spin=still")[1]
        # What a person took would not go with the site.
        assert type_in("unset", "fan:left@n2", "spin")[0] == 0

    # Without the package, what is stored cannot be read, and nothing is lost.
    monkeypatch.delenv("PYTHONPATH")
    site.write_text(BARE)
    refused = type_in("serve", "--dir", tmp_path, "--site", site, "--listen", ADDRESS)
    assert refused[:2] == (1, "")
    assert refused[2].splitlines()[-3:] == [
        "error: 2 stored entities are of a kind that is not declared: fan",
        "  state.db, fan:left@n1 among them",
        "  install the package that brings it; with it, apply a site without them, then start",
    ]
    monkeypatch.setenv("PYTHONPATH", str(fans))
    with served(tmp_path, "--site", site, address=ADDRESS):
        wait_for(lambda: type_in("get", "fan")[1] == "")
    monkeypatch.delenv("PYTHONPATH")
    with served(tmp_path, "--site", site, address=ADDRESS):
        assert type_in("status")[0] == 0


def test_a_kind_of_a_package_is_drawn_with_the_modules_of_packages(fans: Path) -> None:
    drawn = json.loads(haptera("graph", "fan", "-o", "json", path=[fans]).stdout)

    moves = {one["part"] for graph in drawn["graphs"] for one in graph["edges"]}
    assert moves >= {"fans.start", "fans.stop"}


def test_what_is_installed_is_listed_with_whose_it_is(fans: Path) -> None:
    done = haptera("module", "list", "-o", "json", path=[fans])

    told = [(one["group"], one["name"], one["package"]) for one in json.loads(done.stdout)]
    assert done.returncode == 0
    assert told[-2:] == [("haptera.modules", "fans", "fans"), ("haptera.kinds", "fan", "fans")]
    assert {package for _, _, package in told[:-2]} == {"haptera"}


WRONG = {
    "twice": (
        {"name": "breeze", "group": "kinds", "entry": 'fan = "fans.kind:kind"'},
        "error: 2 packages bring 'fan'\n"
        "  entry points haptera.kinds: breeze 2 (fans.kind:kind), fans 1.0 (fans.kind:kind)\n"
        "  uninstall all but one\n",
    ),
    "not there": (
        {"name": "gale", "group": "kinds", "entry": 'gust = "gale:kind"'},
        "error: 'gust' of gale 2 (gale:kind): cannot be imported: ModuleNotFoundError: No module"
        " named 'gale'\n  entry points haptera.kinds\n  fix the package, or uninstall it\n",
    ),
    "no kind": (
        {"name": "calm", "group": "kinds", "entry": 'calm = "fans.kind:spin"'},
        "error: 'calm' of calm 2 (fans.kind:spin): is no Kind but Variable\n"
        "  entry points haptera.kinds\n  name a Kind\n",
    ),
    "another": (
        {"name": "draft", "group": "kinds", "entry": 'draft = "fans.kind:kind"'},
        "error: 'draft' of draft 2 (fans.kind:kind): is kind 'fan'\n"
        "  entry points haptera.kinds\n  call the entry point 'fan'\n",
    ),
    "ours": (
        {"name": "usurper", "group": "modules", "entry": 'jobs = "fans.module:module"'},
        "error: module jobs comes with haptera: that of usurper 2 (fans.module:module) is not used"
        "\n  entry points haptera.modules\n  give it another name\n",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_package_is_told(fans: Path, tmp_path: Path, case: str) -> None:
    words, said = WRONG[case]
    text = OF_FANS
    for word in ("name", "group", "entry"):
        text = text.replace(word.upper(), words[word])
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "pyproject.toml").write_text(text)
    other = installed(tmp_path / "source", tmp_path / "site-packages")
    done = haptera("module", "list", path=[fans, other])

    assert (done.returncode, done.stderr) == (1, said)


def test_one_module_of_two_packages_is_refused_to_the_site_that_names_it(
    fans: Path, tmp_path: Path
) -> None:
    (tmp_path / "source").mkdir()
    text = OF_FANS.replace("NAME", "breeze").replace("GROUP", "modules")
    (tmp_path / "source" / "pyproject.toml").write_text(
        text.replace("ENTRY", 'fans = "fans.kind:kind"')
    )
    other = installed(tmp_path / "source", tmp_path / "site-packages")
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "bare.yaml").write_text(BARE)

    done = haptera("check", tmp_path / "site.yaml", path=[fans, other])
    assert done.returncode == 1
    assert "2 packages bring 'fans'" in done.stderr
    assert haptera("check", tmp_path / "bare.yaml", path=[fans, other]).returncode == 0


def installed(source: Path, target: Path) -> Path:
    """Install a package with pip, without asking any registry; where it is."""
    offline = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--no-warn-conflicts"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, "--target", target, source],
        check=True,
        timeout=WAIT_S_MAX,
        capture_output=True,
    )
    return target


def haptera(*words: object, path: list[Path]) -> subprocess.CompletedProcess[str]:
    env: Mapping[str, str] = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    return subprocess.run(
        [sys.executable, "-m", "haptera", *map(str, words)],
        capture_output=True,
        text=True,
        env=env,
        timeout=WAIT_S_MAX,
        check=False,
    )
