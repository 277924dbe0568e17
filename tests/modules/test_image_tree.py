"""Images in a tree: a node has its image from the parent below the root, and that from the root."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kills.processes import wait_for
from tests.kills.rig import Lab
from tests.modules.image_rig import a_root, needs

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.net,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts and containers need root"),
    needs("buildah", "mksquashfs", "unsquashfs", "runc", "ldd"),
]
WITHIN_S = 90
SITE = """
cluster: below
modules: [image, jobs, labnode, system]
nodes:
  m1: {{address: "127.{{x}}.0.12", has_agent: "never"}}
  n1: {{platform: labnode, address: "127.{{x}}.1.1", bmc: "127.{{x}}.2.1:4280", parents: m1}}
desired:
  n1: {{power: on, agent: up}}
  image:a: {{state: built, recipe: "{{site}}/a"}}
  image:b: {{state: built, recipe: "{{site}}/b"}}
  system:compute@n1: {{run: running, image: a}}
"""
RECIPE = 'FROM scratch\nCOPY root/ /\nCMD ["/init"]\n'
SERVES = "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"


@contextmanager
def parent_below(folder: Path, above: Path, address: str) -> Iterator[None]:
    """A parent below that one, from when it serves."""
    folder.mkdir()
    own = ("--dir", str(folder), "--listen", address, "--name", "m1", "--hello", "1")
    command = [sys.executable, "-m", "haptera", "serve", *own, "--above", str(above)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert any("serves the API" in line for line in process.stderr)
            yield
        finally:
            process.terminate()
            process.communicate()


def view(lab: Lab, entity: str) -> dict[str, Any]:
    with closing(lab.api()) as api:
        answer = api.ask("GET", f"/v1/entities/{entity}")
    return {} if answer is None else dict(answer[2])


def runs(lab: Lab, image: str) -> bool:
    """Whether the node runs it: by the digest that the root has built."""
    system, built = view(lab, "system:compute@n1"), view(lab, f"image:{image}")
    if "converged" not in (system.get("condition"), built.get("condition")):
        return False
    applied, state = system["observed"].get("applied", {}), built["observed"].get("state", {})
    digest = str(state.get("note")).split(",", maxsplit=1)[0]
    return (applied.get("value"), applied.get("note")) == ("current", digest)


def test_a_node_has_its_image_from_its_parent_which_has_no_others(tmp_path: Path) -> None:
    for image in ("a", "b"):
        (tmp_path / image).mkdir()
        a_root(tmp_path / image / "root", f"# {image}\n{SERVES}")
        (tmp_path / image / "Dockerfile").write_text(RECIPE)
    lab = Lab(tmp_path, SITE)
    with lab.running():
        try:
            root = lab.root / "client.json"
            octet = msgspec.json.decode(root.read_bytes())["url"].split(".")[1]
            address = f"127.{octet}.0.12"
            with parent_below(tmp_path / "m1", root, address):
                _check(lab, tmp_path / "m1", address)
        finally:
            lab.stop()


def _check(lab: Lab, below: Path, address: str) -> None:
    names = below / ".haptera/parent/images/names"
    for image in ("a", "b"):
        command = (sys.executable, "-m", "haptera", "--client", lab.root / "client.json")
        words = ("set", "system:compute@n1", f"image={image}", "--take")
        subprocess.run([*command, *words], check=True, capture_output=True)
        wait_for(f"n1 runs {image}", lambda image=image: runs(lab, image) or None, WITHIN_S)
        only = [f"{image}.json"]
        wait_for(f"m1 has {only}", lambda only=only: os.listdir(names) == only or None, WITHIN_S)
        # As the root has signed it: it was built once.
        signed = lab.root / "parent/images/names" / f"{image}.json"
        assert (names / signed.name).read_bytes() == signed.read_bytes()
    uplink = msgspec.json.decode((lab.root / "nodes/n1/run/uplink.json").read_bytes())
    assert uplink["host"] == address
