"""Root in a system, in a real lab: of all that haptera is, only the gate of the jobs answers."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path

import msgspec
import pytest

from haptera.daemon.parts import ARTEFACTS_PORT, HELLO_PORT
from haptera.images.parent import Parent
from haptera.runtime.network.tls import parent_context
from haptera.sdk import uplink
from tests.kills.processes import wait_for
from tests.kills.rig import Lab
from tests.modules.image_rig import a_root, needs

WITHIN_S = 60
TOOLS = ("perl", "mount", "mknod", "nsenter", "unshare", "curl")

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.campaign,
    pytest.mark.timeout(2 * WITHIN_S),
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts and containers need root"),
    needs("buildah", "mksquashfs", "runc", "ldd", *TOOLS),
]

SITE = """
cluster: intruder
modules: [image, jobs, labnode, system]
nodes:
  n1: {{platform: labnode, address: "127.{{x}}.1.1", bmc: "127.{{x}}.2.1:4280"}}
desired:
  n1: {{power: on, agent: up}}
  image:a: {{state: built, recipe: "{{site}}/a"}}
  system:compute@n1: {{run: running, image: a}}
  system:login@n1: {{run: running, image: a}}
"""
RECIPE = 'FROM scratch\nCOPY root/ /\nCMD ["/init"]\n'
SERVES = "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"
KERNELS = ("proc", "sysfs", "cgroup", "cgroup2", "devtmpfs")
NOTHING = "000"  # what curl says where nobody answered in HTTP


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("haptera")
    root = folder / "a/root"
    root.mkdir(parents=True)
    a_root(root, SERVES, ("/bin/sh", "/bin/sleep", *(shutil.which(one) or one for one in TOOLS)))
    _add_perl(root)
    shutil.copy(Path(__file__).with_name("intruder.pl"), root)
    (folder / "a/Dockerfile").write_text(RECIPE)
    one = Lab(folder, SITE)
    with one.running():
        try:
            for entity in ("system:compute@n1", "system:login@n1"):
                wait_for(f"{entity} runs", lambda entity=entity: _runs(one, entity), WITHIN_S)
            yield one
        finally:
            one.stop()


def _add_perl(root: Path) -> None:
    """What a small program in Perl loads."""
    words = ["perl", "-MSocket", "-e", "print $INC{'Socket.pm'}"]
    place = Path(subprocess.run(words, capture_output=True, text=True, check=True).stdout).parent
    shutil.copytree(place, root / str(place).lstrip("/"), dirs_exist_ok=True)


def _runs(lab: Lab, entity: str) -> bool | None:
    with closing(lab.api()) as api:
        answer = api.ask("GET", f"/v1/entities/{entity}")
    return None if answer is None or answer[2]["condition"] != "converged" else True


def _check_doors_answer_who_may(lab: Lab, node: str) -> None:
    """From outside, with the keys that are not in the system: both ports of TLS are open."""
    with Parent(uplink(lab.root / "nodes/n1/run")).get("/images/a", {}) as answer:
        assert answer.status == HTTPStatus.OK
    parent = lab.root / "parent"
    context = parent_context((parent / "ca.pem").read_bytes(), parent / "parent.pem")
    link = socket.create_connection((node, HELLO_PORT), WITHIN_S)
    with link, context.wrap_socket(link) as end:
        assert end.getpeercert()


def test_root_in_a_system_reaches_nothing_of_haptera_but_the_gate(lab: Lab) -> None:
    client = msgspec.json.decode((lab.root / "client.json").read_bytes())
    node = (lab.root / "nodes/n1/address").read_text().strip()
    parent = str(client["url"]).split("//")[1].split(":")[0]
    files = [
        *(lab.root / "parent").glob("*"),
        *(lab.root / "nodes/n1/run").glob("*"),
        lab.root / "client.json",
        lab.root / "nodes/n1/run/systems/login",
    ]
    assert {"state.db", "identity.pem", "uplink.json", "systems"} <= {one.name for one in files}
    agent = f"https://{node}:{HELLO_PORT}/"
    doors = [agent, f"https://{parent}:{ARTEFACTS_PORT}/images/a", f"{client['url']}/v1/entities"]
    _check_doors_answer_who_may(lab, node)
    words = [word for one in files for word in ("file", str(one))]
    words += [word for one in doors for word in ("door", one)]
    command = (sys.executable, "-m", "haptera", "--client", lab.root / "client.json")
    said = subprocess.run(
        [*command, "exec", "n1/compute", "--", "perl", "/intruder.pl", *words],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert said.returncode == 0, said.stderr

    assert said.stdout.splitlines() == [
        "find a file: no",
        "find a file by way of a process: no",
        "write the kernel's settings: no",
        "read the kernel's memory: no",
        "see other processes: no",
        "see what others are told: no",
        *(f"mount {one}: no" for one in KERNELS),
        *(f"mount {one} in a user namespace: no" for one in KERNELS),
        "mount a folder elsewhere: no",
        "make a read-only folder writable: no",
        "enter another namespace: no",
        "open a device: no",
        # Device files can be made. Where such files work, the cgroup of the system's devices stops
        # them; in the others, the mount does.
        "a device is stopped in /dev/shm: Permission denied",
        "a device is stopped in /dev: Operation not permitted",
        "a device is stopped in /run: Permission denied",
        "a device is stopped in /tmp: Permission denied",
        # The kernel tells them to all who share the node's network; there is no way to them.
        "read the names of sockets: DONE",
        "call a socket: no",
        f"ask at a door: {NOTHING}",
        f"ask at a door: {NOTHING}",
        "ask at a door: 401",
        "of haptera: /run/haptera/init"
        " /run/haptera/jobs /run/haptera/jobs/open /run/haptera/jobs/open/gate",
        "change the gate: no",
        "enter by the gate: DONE",
    ]
