"""Two emulated machines in minOS, with a kernel whose cgroups are of version 2: what it holds.

They run systems within limits, which are rolled to another image, and a replica that needs more
memory than it may have. Then artefacts are no longer fetched: they are mounted from an NFS server.
One of the machines is booted anew with another minOS. Last, both are nodes of a Slurm, whose slurmd
is in the image of a second system.
"""

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kills.processes import wait_for
from tests.kills.rig import Lab
from tests.modules.image_rig import a_root, needs

WITHIN_S = 420
NODES = ("m1", "m2")
SHA256_DIGITS = 64
DRIVERS = ("virtio_pci", "virtio_net", "loop", "squashfs", "overlay", "nfsv4")

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.campaign,
    pytest.mark.timeout(3 * WITHIN_S),
    pytest.mark.skipif(os.geteuid() != 0, reason="virtual machines on a bridge need root"),
    needs("qemu-system-x86_64", "ipmi_sim", "zstd", "ip", "buildah", "mksquashfs", "runc", "ldd"),
]

SITE = """
cluster: minos
modules:
  image: {{}}
  jobs: {{}}
  minos: {{}}
  replica: {{}}
  slurm: {{settings: {{conf: PRIVATE/slurm.conf}}}}
  system: {{}}
  ipmi: {{settings: {{user: haptera, password: {{secret: bmc}}, cipher_suite: 3, graceful_s: 2}}}}
  netboot:
    settings:
      interface: br0
      address: 10.99.0.1/24
      kernel_arguments: console=ttyS0 quiet
controllers: {{roll: {{}}}}
# The default is three steps an hour on a node, which two changes of image and a boot use up.
budgets:
  often: {{per: node, at_once: 1, per_hour: 20}}
nodes:
  m[1-2]:
    platform: ipmi
    boot_from: network
    mac: "52:54:00:00:01:0{{m}}"
    address: "10.99.0.1{{m}}"
    bmc: "127.{{x}}.2.{{m}}:623"
desired:
  m[1-2]: {{power: on, agent: up}}
  system:compute@m[1-2]:
    run: running
    image: old
    limits: memory 48MB, cpu 50%, pids 20
  image:old: {{state: built, recipe: "{{site}}/old"}}
  image:new: {{state: built, recipe: "{{site}}/new"}}
  image:shared: {{state: built, recipe: "{{site}}/shared"}}
  group:leak:
    command: '/bin/sh -c "tail /dev/zero"'
    replicas: 1
    on: m1
    leader: none
    limits: memory 24MB
lab:
  bridge: {{interface: br0, address: 10.99.0.1/24}}
  memory_mb: 384
"""
# A second system, with a slurmd in its image; its nodes are drained before they are disturbed.
SLURMD = """
  system:batch@m[1-2]: {run: running, image: a}
  image:a: {state: built, recipe: PRIVATE/a}
  image:b: {state: built, recipe: PRIVATE/b}
"""
GATE = "PrologFlags=Alloc\nProlog=/etc/slurm/prolog\nEpilog=/etc/slurm/epilog"
# What was there before the roll goes on until it may end; what waited finds the new image.
BEFORE = "until [ -e /tmp/go ]; do sleep 1; done"
AFTER = 'read image </etc/image && [ "$image" = b ]'
# Mounts the server's only folder once, and says where in it the artefact is.
ATTACH = (
    "sh -c 'mkdir -p /run/nfs; mountpoint -q /run/nfs"
    " || mount -t nfs4 -o ro,addr=10.99.0.1 10.99.0.1:/images /run/nfs; echo /run/nfs/{digest}'"
)
# Of version 4 only, which needs one port and no registry of ports.
SERVER = """
NFS_CORE_PARAM {{
    Protocols = 4; Bind_addr = 10.99.0.1; Enable_NLM = false; Enable_RQUOTA = false;
}}
NFSv4 {{ Graceless = true; RecoveryRoot = "{work}"; }}
EXPORT {{
    Export_Id = 1; Path = "{images}"; Pseudo = /images; Access_Type = RO; Squash = None;
    SecType = sys; Protocols = 4; Transports = TCP; FSAL {{ Name = VFS; }}
}}
"""
ROOT = Path(__file__).resolve().parents[2]
PRIVATE_SLURM, SLURMD_ROOT = ROOT / "tools/private-slurm", ROOT / "tools/slurmd-root"
UNHEARD = ("has been silent for", "did not answer within")
MISSING = "/minos/next/kernel\n"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
PROGRAMS = ("/bin/sh", "/bin/sleep", "/bin/cat", "/usr/bin/tail")
RECIPE = 'FROM scratch\nCOPY root/ /\nCMD ["{init}"]\n'
# More than it may, and leaves nothing but its init.
FORKS = """
(i=0; while [ $i -lt 30 ]; do i=$((i + 1)); sleep 1000 & done) 2>/dev/null
echo $?
trap '' TERM
kill -TERM 0
"""
SERVES = "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"


class Rack:
    """The two machines, asked as a person asks."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.folder = lab.directory

    def haptera(self, *words: str) -> str:
        """What it prints, once the machine is heard: other tests may take the processors."""
        command = (sys.executable, "-m", "haptera", "--client", str(self._lab.root / "api.sock"))

        def heard() -> "subprocess.CompletedProcess[str] | None":
            said = subprocess.run(
                [*command, *words], capture_output=True, text=True, timeout=WITHIN_S
            )
            return None if any(one in said.stderr for one in UNHEARD) else said

        said = wait_for(f"{' '.join(words)} is answered", heard, WITHIN_S)
        assert said.returncode == 0, (words, said.stdout, said.stderr)
        return said.stdout

    def views(self, selector: str) -> list[dict[str, Any]]:
        said = self.haptera("get", selector, "-o", "json")
        return list(json.loads(said))

    def until(self, what: str, so: Callable[[], object]) -> Any:
        try:
            return wait_for(what, so, WITHIN_S)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.haptera('get', '*', '-o', 'json')}") from late

    def declare(self, before: str, after: str) -> None:
        """Write something else in the site file, and apply it."""
        site = self.folder / "site.yaml"
        known = json.loads((self._lab.root / "client.json").read_text())
        text = site.read_text().replace("{x}", known["constants"]["x"])
        assert text.count(before) == 1
        site.write_text(text.replace(before, after))
        self.haptera("apply", "--take", str(site))

    @property
    def images(self) -> Path:
        """The artefacts that the parent has, by digest."""
        return self._lab.root / "parent" / "images" / "sha256"

    def beside_the_parent(
        self, *command: str | Path, **environment: str | Path
    ) -> "subprocess.Popen[str]":
        """A process of this machine, in the network namespace of the bridge."""
        inside = ("nsenter", "--net", f"--target={self._lab.parent().pid}")
        told = {**os.environ, **{name: str(value) for name, value in environment.items()}}
        return subprocess.Popen([*inside, *command], stdout=subprocess.PIPE, text=True, env=told)

    def applied(self, selector: str) -> bool:
        """Whether what is declared of these is in force on both machines."""
        return [one["condition"] for one in self.views(selector)] == ["converged"] * len(NODES)

    def runs(self, image: str, system: str = "compute") -> bool:
        """Whether both machines are known to run this image."""
        views = self.views(f"system:{system}@m*")
        held = [(one["condition"], one["desired"]["image"]["value"]) for one in views]
        return held == [("converged", image)] * len(NODES)


def build_minos(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    build = (sys.executable, "-m", "haptera", "minos", "build", "--dir", folder, "--level", "3")
    drivers = [word for name in DRIVERS for word in ("--driver", name)]
    command = [*build, *options, *drivers, "--program", "runc"]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    folder = tmp_path_factory.mktemp("rack")
    for image in ("old", "new", "shared"):
        root = folder / image / "root"
        root.mkdir(parents=True)
        a_root(root, f"# {image}\n{SERVES}", PROGRAMS)
        (folder / image / "Dockerfile").write_text(RECIPE.format(init="/init"))
    built = build_minos(folder)
    if built.returncode != 0:
        pytest.skip(built.stderr.strip())
    lab = Lab(folder, SITE.replace("PRIVATE", str(folder / "slurm")))
    with lab.running():
        try:
            one = Rack(lab)
            one.until("both machines run the image", lambda: one.runs("old"))
            yield one
        finally:
            lab.stop()


@pytest.fixture(scope="module")
def nfs(rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A server of the images that the parent has, on the machines' bridge."""
    folder = tmp_path_factory.mktemp("nfs")
    told, log = folder / "ganesha.conf", folder / "log"
    told.write_text(SERVER.format(work=folder, images=rack.images))
    files = ("-f", told, "-p", folder / "pid", "-L", log)
    with rack.beside_the_parent("ganesha.nfsd", "-F", *files) as server:

        def listens() -> bool:
            assert server.poll() is None, log.read_text()
            said, _ = rack.beside_the_parent("ss", "-Hltn", "sport = :2049").communicate()
            return bool(said)

        try:
            wait_for("the NFS server listens", listens, WITHIN_S)
            yield
        finally:
            server.kill()


class Slurm:
    """A slurmctld beside the parent, and what people ask it."""

    def __init__(self, rack: Rack, private: Path) -> None:
        self._rack = rack
        self.conf = private / "slurm.conf"
        self._private = private

    def start(self) -> None:
        told = {"SLURMD": "elsewhere", "LAYOUT": "one", "MORE": GATE}
        command = (PRIVATE_SLURM, "start", self._private, "m=2:1:256")
        at = {"ADDRESS": "10.99.0.1", "NODES_AT": "10.99.0.1[1-2]"}
        with self._rack.beside_the_parent(*command, **told, **at) as starting:
            assert starting.wait() == 0

    def stop(self) -> None:
        subprocess.run([PRIVATE_SLURM, "stop", self._private], check=True)

    def ask(self, *command: str) -> str:
        asked = self._rack.beside_the_parent(*command, SLURM_CONF=self.conf)
        said, _ = asked.communicate()
        assert asked.returncode == 0, command
        return said

    def submit(self, node: str, script: str) -> str:
        options = ("--parsable", "--chdir=/", "--output=/dev/null", "--exclusive")
        return self.ask("sbatch", *options, f"--nodelist={node}", f"--wrap={script}").strip()

    def ended(self) -> dict[str, list[str]]:
        """As Slurm itself wrote it down: the states in which each job has ended."""
        file, found = self._private / "jobcomp", defaultdict(list)
        for line in file.read_text().splitlines() if file.exists() else ():
            fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
            found[fields["JobId"]].append(fields["JobState"])
        return found


@pytest.fixture(scope="module")
def slurm(rack: Rack) -> Iterator[Slurm]:
    """Both machines are nodes of this Slurm."""
    private = rack.folder / "slurm"
    private.mkdir()
    one = Slurm(rack, private)
    try:
        one.start()
        for image in "ab":
            folder = private / image
            folder.mkdir()
            subprocess.run([SLURMD_ROOT, private, folder / "root"], check=True)
            (folder / "root/etc/image").write_text(f"{image}\n")
            (folder / "Dockerfile").write_text(RECIPE.format(init="/sbin/init"))
        rack.declare("    boot_from: network", '    boot_from: network\n    slurm.member: "yes"')
        rack.declare("\n  group:leak:", f"{SLURMD.replace('PRIVATE', str(private))}  group:leak:")
        rack.until("both machines run a slurmd", lambda: rack.runs("a", "batch"))
        rack.until("Slurm has both", lambda: one.ask("sinfo", "-h", "-o", "%T") == "idle\n")
        yield one
    finally:
        one.stop()


def test_a_system_on_a_minos_is_held_to_its_limits_by_the_kernel(rack: Rack) -> None:
    where = rack.haptera("exec", "m1/compute", "--", "cat", "/proc/self/cgroup").strip()
    group = f"/sys/fs/cgroup{where.removeprefix('0::')}"
    files = [f"{group}/{name}" for name in ("memory.max", "cpu.max", "pids.max")]
    assert rack.haptera("exec", "m1", "--", "cat", *files) == f"{48 << 20}\n50000 100000\n20\n"

    forked = rack.haptera("exec", "m1/compute", "--", "sh", "-c", FORKS)
    assert forked == "2\n"  # it cannot fork any more
    filled = rack.haptera("exec", "m1/compute", "--", "sh", "-c", "tail /dev/zero; echo $?")
    assert filled == f"{128 + signal.SIGKILL}\n"
    assert "oom_kill 1\n" in rack.haptera("exec", "m1", "--", "cat", f"{group}/memory.events")
    assert rack.runs("old")


def test_a_replica_that_needs_more_memory_is_killed_by_the_kernel_and_says_so(rack: Rack) -> None:
    def told() -> bool:
        said = rack.haptera("why", "replica:leak.0@m1")
        return "it needed more than 24 MB of memory" in said

    rack.until("the reason is told", told)
    assert "Memory cgroup out of memory: Killed process" in rack.haptera(
        "exec", "m1", "--", "dmesg"
    )


def test_an_image_is_rolled_over_both_machines(rack: Rack) -> None:
    rack.haptera("roll", "system:compute@m*", "--image", "new", "--take", "--no-wait")
    rack.until("both run the new image", lambda: rack.runs("new"))
    said = [rack.haptera("exec", f"{node}/compute", "--", "cat", "/init") for node in NODES]
    assert said == [f"#!/bin/sh\n# new\n{SERVES}\n"] * len(NODES)


@needs("ganesha.nfsd", "nsenter", "ss")
def test_images_are_mounted_from_an_nfs_server_where_that_is_declared(
    rack: Rack, nfs: None
) -> None:
    rack.declare("system: {}", f'system: {{settings: {{attach: "{ATTACH}"}}}}')
    # What is staged before a node has heard of this is fetched, as it was before.
    rack.until("both machines know how to attach", lambda: rack.applied("module:system@m*"))
    rack.declare("image: old", "image: shared")
    rack.until("both machines run the image", lambda: rack.runs("shared"))
    _, _, shown = rack.haptera("image", "show", "shared").partition("sha256:")
    artefact = f"/run/nfs/{shown[:SHA256_DIGITS]}"
    for node in NODES:
        mounts = rack.haptera("exec", node, "--", "cat", "/proc/mounts")
        assert "\n10.99.0.1:/images /run/nfs nfs4 ro," in mounts
        # One may go while they are read.
        reads = "cat /sys/block/loop*/loop/backing_file || true"
        assert artefact in rack.haptera("exec", node, "--", "sh", "-c", reads).splitlines()


def test_a_machine_is_booted_with_another_minos_once_that_is_there(rack: Rack) -> None:
    """A name that is mistyped leaves it as it runs; the other machine is not touched at all."""

    def boots() -> list[str]:
        return [rack.haptera("exec", one, "--", "cat", BOOT_ID, "/proc/cmdline") for one in NODES]

    before = boots()
    rack.haptera("set", "node:m1", "minos=next")
    rack.until("the missing file is named", lambda: MISSING in rack.haptera("why", "-v", "node:m1"))
    assert boots() == before

    built = build_minos(rack.folder, "--name", "next")
    assert built.returncode == 0, built.stderr

    def is_new() -> bool:
        view = next(one for one in rack.views("node:m*") if one["entity"] == "node:m1")
        booted = view["observed"].get("booted", {})  # It is forgotten until the agent has looked.
        return (view["condition"], booted.get("note")) == ("converged", "next")

    rack.until("the other minOS runs", is_new)
    systems = "system:compute@m*"
    rack.until(
        "both machines run their systems again",
        lambda: {one["condition"] for one in rack.views(systems)} == {"converged"},
    )
    after = boots()
    assert " haptera.minos=next " in after[0]
    assert after[0].split()[0] != before[0].split()[0]
    assert after[1] == before[1]


@needs("slurmctld", "slurmd", "sbatch", "nsenter")
def test_a_roll_of_the_slurmd_in_them_hurts_no_job(rack: Rack, slurm: Slurm) -> None:
    """Three jobs for each machine, back to back: the roll takes place after the first of them."""
    jobs = [[slurm.submit(node, one) for one in (BEFORE, AFTER, AFTER)] for node in NODES]
    begun = [first for first, _, _ in jobs]
    rack.until("the first ones run", lambda: running(slurm) == begun)

    rack.haptera("roll", "system:batch@m*", "--image", "b", "--take", "--no-wait")
    for node, job in zip(NODES, begun, strict=True):
        waits = f"Slurm's job {job} runs"
        rack.until(
            "it is told for which job the roll waits",
            lambda says=waits, on=node: says in rack.haptera("why", on),
        )
        rack.haptera("exec", f"{node}/batch", "--", "sh", "-c", ": >/tmp/go")

    rack.until("both run the new image", lambda: rack.runs("b", "batch"))
    ended = {job: ["COMPLETED"] for one in jobs for job in one}
    rack.until("each job ran once, to its end", lambda: slurm.ended() == ended)
    rack.until("both are idle", lambda: slurm.ask("sinfo", "-h", "-o", "%T") == "idle\n")


def running(slurm: Slurm) -> list[str]:
    """The jobs that run, in their order."""
    return sorted(slurm.ask("squeue", "-h", "-t", "running", "-o", "%i").split(), key=int)
