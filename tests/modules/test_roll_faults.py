"""Rolls of a real lab whose parts break: an artefact, a disk, an agent, a parent, an init."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from haptera.modules.image.store import store_of
from tests.kills.processes import kill, wait_for
from tests.kills.rig import Lab, stopped
from tests.modules.image_rig import a_root, needs

WITHIN_S = 120
DEAD_S = 30

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.campaign,
    pytest.mark.timeout(2 * WITHIN_S),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts and containers need root"),
    needs("buildah", "mksquashfs", "runc", "ldd", "nsenter"),
]

SITE = """
cluster: rolls
modules: [image, jobs, labnode, system]
controllers:
  roll: {{}}
nodes:
  n[1-3]:
    platform: labnode
    address: "127.{{x}}.1.{{n}}"
    bmc: "127.{{x}}.2.{{n}}:4280"
desired:
  n[1-3]: {{power: on, agent: up}}
  system:compute@n[1-3]: {{run: running, image: old}}
  image:old: {{state: built, recipe: "{{site}}/old"}}
  image:flipped: {{state: built, recipe: "{{site}}/flipped"}}
  image:large: {{state: built, recipe: "{{site}}/large"}}
  image:new: {{state: built, recipe: "{{site}}/new"}}
"""
RECIPE = 'FROM scratch\nCOPY root/ /\nCMD ["/init"]\n'
# It ends by SIGKILL alone, as the first process or behind one.
DEAF = "trap '' TERM; while :; do sleep 1000; done"
SERVES = "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"


class Rolls:
    """Three nodes that run `old`, whose init is deaf, and images that they can be rolled to."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.store = store_of(lab.root / "parent")

    def begin(self, nodes: str, image: str) -> None:
        """Order a roll of these nodes as a person does."""
        command = (sys.executable, "-m", "haptera", "--client", self.lab.root / "client.json")
        order = ("roll", f"system:compute@{nodes}", "--image", image, "--take", "--no-wait")
        subprocess.run([*command, *order], check=True, timeout=WITHIN_S)

    def artefact(self, image: str) -> Path:
        """Where the parent keeps it."""
        manifest = self.store.manifest(image)
        assert manifest is not None
        return self.store.artefact(manifest.digest)

    def view(self, entity: str) -> Any:
        with closing(self.lab.api()) as api:
            answer = api.ask("GET", f"/v1/entities/{entity}")
        return None if answer is None or answer[0] != 200 else answer[2]

    def wants(self, node: str) -> str | None:
        """The image that is desired there."""
        view = self.view(f"system:compute@{node}")
        return None if view is None else str(view["desired"]["image"]["value"])

    def runs(self, node: str) -> str | None:
        """The image that is known to run there."""
        view = self.view(f"system:compute@{node}")
        if view is None or view["condition"] != "converged":
            return None
        return str(view["desired"]["image"]["value"])

    def until(self, what: str, so: Callable[[], object]) -> None:
        try:
            wait_for(what, lambda: so() or None, WITHIN_S)
        except AssertionError as late:
            with closing(self.lab.api()) as api:
                raise AssertionError(f"{late}: {api.ask('GET', '/v1/entities')}") from late

    def rolled(self, node: str, image: str) -> None:
        self.until(f"{node} runs {image}", lambda: self.runs(node) == image)

    def says(self, node: str, words: str) -> None:
        """The system still runs its old image, and why it does not get the new one is told."""

        def said() -> bool:
            view = self.view(f"system:compute@{node}")
            return view is not None and words in str(view["why"])

        self.until(f"{node} says: {words}", said)
        view = self.view(f"system:compute@{node}")
        assert view["desired"]["image"]["value"] == "old"
        assert view["observed"]["run"]["value"] == "running"


@pytest.fixture(scope="module")
def rolls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rolls]:
    folder = tmp_path_factory.mktemp("rolls")
    for image in ("old", "flipped", "large", "new"):
        root = folder / image / "root"
        root.mkdir(parents=True)
        a_root(root, f"# {image}\n{DEAF if image == 'old' else SERVES}")
        (folder / image / "Dockerfile").write_text(RECIPE)
    lab = Lab(folder, SITE)
    with lab.running():
        try:
            one = Rolls(lab)
            for node in ("n1", "n2", "n3"):
                one.rolled(node, "old")
            for image in ("flipped", "large", "new"):
                one.until(f"{image} is built", lambda image=image: built(one, image))
            yield one
        finally:
            # Killed, it would leave the systems, and with them their mounts and loop devices.
            lab.stop()


def built(rolls: Rolls, image: str) -> bool:
    view = rolls.view(f"image:{image}")
    return view is not None and view["condition"] == "converged"


def test_an_artefact_with_a_flipped_bit_is_named_and_never_mounted(rolls: Rolls) -> None:
    artefact = rolls.artefact("flipped")
    content = bytearray(artefact.read_bytes())
    content[len(content) // 2] ^= 1
    artefact.write_bytes(content)
    rolls.begin("n1", "flipped")
    rolls.says("n1", f"what came is not sha256:{artefact.name}")

    content[len(content) // 2] ^= 1
    artefact.write_bytes(content)
    rolls.rolled("n1", "flipped")


def test_a_full_disk_is_named_and_room_helps(rolls: Rolls) -> None:
    folder = rolls.lab.root / "nodes" / "n2" / "run" / "images"
    # A node of a lab has mounts of its own.
    inside = ("nsenter", "--mount", f"--target={rolls.lab.agent('n2').pid}")
    mount = ("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder)
    subprocess.run([*inside, *mount], check=True)
    rolls.begin("n2", "large")
    rolls.says("n2", f"No space left on device: {folder}")

    subprocess.run([*inside, "umount", folder], check=True)
    rolls.rolled("n2", "large")


def test_an_agent_that_is_killed_while_it_stages_stages_again_at_once(rolls: Rolls) -> None:
    """Not after the 15 minutes that staging may take."""
    agent = rolls.lab.agent("n3")
    with stopped(rolls.lab.module(agent, "system")):
        rolls.begin("n3", "new")
        rolls.until("it stages", lambda: rolls.lab.agent_means_something("n3"))
        kill(agent)
    rolls.rolled("n3", "new")


def test_a_server_of_artefacts_that_is_dead_for_half_a_minute_is_asked_again(rolls: Rolls) -> None:
    """And the node fetches the image once it is answered again."""
    agent = rolls.lab.agent("n1")
    with ExitStack() as held:
        with stopped(rolls.lab.module(agent, "system")):
            rolls.begin("n1", "new")
            rolls.until("it stages", lambda: rolls.lab.agent_means_something("n1"))
            held.enter_context(stopped(rolls.lab.parent()))
            dead_since = time.monotonic()
        rolls.until("a fetch failed", lambda: not rolls.lab.agent_means_something("n1"))
        rolls.until("half a minute is over", lambda: time.monotonic() - dead_since >= DEAD_S)
    rolls.rolled("n1", "new")


def test_a_parent_that_is_killed_in_the_middle_goes_on(rolls: Rolls) -> None:
    rolls.begin("n[2-3]", "flipped")
    rolls.until("one is taken", lambda: {rolls.wants("n2"), rolls.wants("n3")} >= {"flipped"})
    kill(rolls.lab.parent())
    for node in ("n2", "n3"):
        rolls.rolled(node, "flipped")
