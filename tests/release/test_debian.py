"""The Debian packages in a bare Debian without a network, and the image of a parent."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.rig import wait_for
from tests.release.containers import container
from tests.release.rig import ROOT, checkout, next_version, release

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for another root directory"),
    pytest.mark.skipif(shutil.which("debootstrap") is None, reason="debootstrap is not installed"),
]
OLD, NEW = "1.0.0", "1.1.0"
SITE = "cluster: small\nnodes: {n1: {}}\ndesired: {n1: {power: on}}\n"
SETUP = "haptera setup parent --listen 127.0.0.1 --cluster small"
STATE = "/var/lib/haptera/.haptera"
KEEP = "haptera-parent haptera-parent/delete-state boolean false"
DELETE = "haptera-parent haptera-parent/delete-state boolean true"


@pytest.fixture(scope="module")
def debs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of two versions, as PACKAGE-VERSION; those in $HAPTERA_DEBS, if that is set."""
    if (given := os.environ.get("HAPTERA_DEBS")) is not None:
        return Path(given)
    tree = checkout(tmp_path_factory.mktemp("tree"), OLD)
    made = tmp_path_factory.mktemp("made")
    for version in (OLD, NEW):
        if version == NEW:
            next_version(tree, version)
        code, said = release(tree, "--out", made / version)
        assert code == 0, said
        for deb in (made / version).glob("*.deb"):
            deb.rename(made / f"{deb.name.partition('_')[0]}-{version}")
        for image in (made / version).glob("*.image.tar.gz"):
            image.rename(made / f"image-{version}")
    return made


@pytest.fixture
def root(debs: Path, tmp_path: Path) -> Path:
    """A bare Debian with Python, and with the packages in `/debs`."""
    made = subprocess.run(
        ["examples/images/base", "python3"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    place = tmp_path / "root"
    place.mkdir()
    subprocess.run(["tar", "-x", "-C", place, "-f", made.stdout.strip()], check=True)
    shutil.copytree(debs, place / "debs", ignore=shutil.ignore_patterns(OLD, NEW, "image-*"))
    return place


def entering(root: Path, line: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [ROOT / "tools/enter-root", root, line],
        env={**os.environ, "OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def typed(root: Path, line: str) -> str:
    """What a line of shell writes in that root; it must succeed."""
    with entering(root, f"set -e; export DEBIAN_FRONTEND=noninteractive; {line}") as process:
        said = process.communicate()[0]
    assert process.returncode == 0, f"{line}: {said}"
    return said


def unit(root: Path, name: str) -> dict[str, str]:
    text = (root / "lib/systemd/system" / name).read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


@contextmanager
def running(root: Path) -> Iterator[Callable[[str], str]]:
    """The parent, as its unit starts it; in there, its command line answers a line."""
    told = unit(root, "haptera-parent.service")
    user = f"setpriv --reuid={told['User']} --regid={told['Group']} --init-groups"
    line = f". {told['EnvironmentFile']}; umask {told['UMask']}; {user} {told['ExecStart']}"
    process = entering(root, line)

    def asked(line: str) -> str:
        inner = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().strip()
        within = ("nsenter", "--mount", "--pid", "--net", "--root", "--target", inner)
        words = ("haptera", "--client", f"{STATE}/api.sock", *line.split())
        return subprocess.run([*within, *words], capture_output=True, text=True).stdout

    try:
        api = root / STATE.removeprefix("/") / "client.json"
        api.unlink(missing_ok=True)  # of the run before
        wait_for(lambda: process.poll() is not None or api.exists())
        wait_for(lambda: process.poll() is not None or '"node:n1"' in asked("get node -o json"))
        if process.poll() is None:
            yield asked
    finally:
        process.send_signal(signal.SIGKILL)
        said = process.communicate()[0]
    assert process.returncode == -signal.SIGKILL, said


def test_a_parent_is_installed_upgraded_with_its_state_and_removed(root: Path) -> None:
    typed(root, f"dpkg -i /debs/haptera-parent-{OLD}")
    assert typed(root, "haptera --version") == f"haptera, version {OLD}\n"
    assert typed(root, "stat -c '%U %a' /var/lib/haptera") == "haptera 700\n"
    assert typed(root, "dpkg --verify haptera-parent") == ""
    assert (root / "usr/share/doc/haptera-parent/html/docs/tutorial/install.html").exists()
    (root / "etc/haptera/site.yaml").write_text(SITE)
    said = typed(root, SETUP)
    assert "no systemd runs here" in said
    with running(root) as asked:
        asked("set n1 power=off --take")
    assert "nothing grave" in typed(root, "haptera doctor >/dev/null && echo nothing grave")
    typed(root, SETUP)
    assert "--site" not in (root / "etc/haptera/parent.env").read_text(), "it has state"

    typed(root, f"dpkg -i /debs/haptera-parent-{NEW}")
    assert typed(root, "haptera --version") == f"haptera, version {NEW}\n"
    with running(root) as asked:
        assert '"off"' in asked("get node -o json")

    typed(root, "dpkg -r haptera-parent")
    assert not (root / "opt/haptera").exists()
    assert not (root / "usr/bin/haptera").is_symlink()
    assert (root / STATE.removeprefix("/") / "client.json").exists()
    assert (root / "etc/haptera/site.yaml").exists()


@pytest.mark.parametrize("answer", [None, KEEP, DELETE])
def test_a_purge_deletes_the_state_only_where_that_was_asked_for(
    answer: str | None, root: Path
) -> None:
    typed(root, f"dpkg -i /debs/haptera-parent-{OLD}")
    (root / "etc/haptera/site.yaml").write_text(SITE)
    if answer is not None:
        typed(root, f"echo '{answer}' | debconf-set-selections")
    said = typed(root, "dpkg -P haptera-parent")

    kept = answer != DELETE
    assert (root / "etc/haptera/site.yaml").exists() == kept
    assert (root / "var/lib/haptera").exists() == kept
    assert ("haptera:" in (root / "etc/passwd").read_text()) == kept
    assert ("stay as they are" in said) == kept
    assert "haptera-parent" not in typed(root, "dpkg --get-selections")


def test_a_node_has_the_agent_alone_and_a_parent_has_it_too(root: Path) -> None:
    typed(root, f"dpkg -i /debs/haptera-agent-{OLD}")
    assert "Usage: haptera agent" in typed(root, "haptera agent --help")
    assert not list((root / "opt/haptera").rglob("starlette"))
    assert not (root / "lib/systemd/system/haptera-parent.service").exists()
    assert "haptera-jobs:" in (root / "etc/passwd").read_text()

    typed(root, f"dpkg -i --auto-deconfigure /debs/haptera-parent-{OLD}")
    assert "ii" not in typed(root, "dpkg-query -W -f '${db:Status-Abbrev}' haptera-agent || true")
    assert unit(root, "haptera-agent.service")["ExecStart"].startswith("/opt/haptera/bin/haptera")


@pytest.mark.skipif(shutil.which("runc") is None, reason="runc is not installed")
def test_the_image_serves_as_a_user_without_rights_from_a_root_that_nobody_writes(
    debs: Path, tmp_path: Path
) -> None:
    with container(debs / f"image-{OLD}", tmp_path, SITE) as run:
        asked = ("exec", "--user", "999", "parent")
        wait_for(lambda: run(*asked, "/usr/lib/haptera/alive")[0] == 0)
        assert '"node:n1"' in run(*asked, "haptera", "get", "node", "-o", "json")[1]
        assert run(*asked, "sh", "-c", "id -un; grep -c ^CapEff:.0*$ /proc/self/status") == (
            0,
            "haptera\n1\n",
        )
        assert run(*asked, "touch", "/opt/haptera/one")[0] == 1
        run(*asked, "haptera", "set", "n1", "power=off", "--take")
    # Its state is all there; a parent that is away is not called healthy.
    with container(debs / f"image-{NEW}", tmp_path, SITE) as run:
        wait_for(lambda: '"off"' in run(*asked, "haptera", "get", "node", "-o", "json")[1])
        run("kill", "parent", "STOP")
        assert run(*asked, "/usr/lib/haptera/alive")[0] == 1
