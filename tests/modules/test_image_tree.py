"""Images in a tree of real parents: one below has what its own nodes are to run, and no more."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.modules.image_rig import a_root, needs
from tests.network import NETWORK

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.net,
    pytest.mark.skipif(os.geteuid() != 0, reason="an image is packed with the owners of its files"),
    needs("buildah", "mksquashfs", "unsquashfs", "ldd"),
]
ASKED_EVERY_S = 0.5
ASKED_MAX = 120
SITE = """
cluster: below
modules: [image, jobs, labnode, system]
nodes:
  m1: {{address: "{network}.77.2", has_agent: "never"}}
  n1: {{platform: labnode, address: "{network}.77.3", bmc: "{network}.77.4:4280", parents: m1}}
desired:
  image:a: {{state: built, source: "{root}"}}
  image:b: {{state: built, source: "{root}"}}
  system:compute@n1: {{run: running, image: {image}}}
"""


def haptera(folder: Path, *words: str) -> list[str]:
    client = folder / ".haptera/client.json"
    return [sys.executable, "-m", "haptera", "--client", str(client), *words]


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[None]:
    """A parent, until it is not needed any more; it serves when this begins."""
    folder.mkdir()
    command = haptera(folder, "serve", "--dir", str(folder), "--hello", "1", *words)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert next((line for line in process.stderr if "serves the API" in line), None)
            yield
        finally:
            process.terminate()
            process.communicate()


def images(folder: Path, *names: str) -> dict[str, str]:
    """The digests of all images that a parent has built, once these are the ones."""
    for _ in range(ASKED_MAX):
        command = haptera(folder, "image", "list")
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = dict(re.findall(r"^(\S+) +built +(sha256:\w+)", listed, re.MULTILINE))
        if found.keys() == {*names}:
            return found
        time.sleep(ASKED_EVERY_S)
    raise AssertionError(listed)


@pytest.fixture
def tree() -> Iterator[Path]:
    """The files of an image, which every user can read, as is asked of what is imported."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        (a_root(folder, "exit 0") / "sbin").mkdir(exist_ok=True)
        (folder / "sbin/init").symlink_to("/init")
        yield folder


def test_a_parent_below_has_the_images_of_its_own_nodes_from_the_parent_above(
    tmp_path: Path, tree: Path
) -> None:
    site = tmp_path / "site.yaml"
    told = {"network": NETWORK, "root": tree}
    site.write_text(SITE.format(**told, image="a"))
    root, below = tmp_path / "root", tmp_path / "m1"
    above = root / ".haptera/client.json"
    with ExitStack() as parents:
        parents.enter_context(serving(root, "--site", str(site), "--listen", f"{NETWORK}.77.1"))
        built = images(root, "a", "b")
        parents.enter_context(
            serving(below, "--listen", f"{NETWORK}.77.2", "--name", "m1", "--above", str(above))
        )
        assert images(below, "a") == {"a": built["a"]}
        site.write_text(SITE.format(**told, image="b"))
        subprocess.run(haptera(root, "apply", str(site)), check=True, capture_output=True)
        assert images(below, "b") == {"b": built["b"]}
        names = below / ".haptera/parent/images/names"
        assert [one.name for one in names.iterdir()] == ["b.json"]
