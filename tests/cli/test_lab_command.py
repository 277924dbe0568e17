"""`haptera lab` as a user meets it: why it does not start, and what Ctrl-C leaves."""

import json
import os
import shutil
import signal
import struct
import subprocess
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from haptera.daemon.parent.client import CLIENT_TTL_S
from haptera.lab.layout import octet
from tests.cli.rig import command, environment, held, lab, told, typed
from tests.lab.rig import WAIT_S_MAX, wait_for
from tests.lab.rig import command as process_name
from tests.network import draw_cluster

pytestmark = [pytest.mark.net, pytest.mark.slow]

SITE = """\
cluster: tiny
nodes:
  n[1-2]: {platform: labnode, address: "127.{x}.1.{n}", bmc: "127.{x}.2.{n}:4280"}
services:
  idle: {command: '"{python}" -c "import time; time.sleep(1000)"'}
desired:
  n[1-2]: {power: on, agent: up}
  idle@n[1-2]: {run: running}
lab: {delay_ms: 10}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    return tmp_path


def started(folder, site="site.yaml"):
    return typed("lab", "--dir", folder, "--site", site, folder=folder)


@contextmanager
def running(folder, **beside):
    """A lab that has converged; interrupted, it leaves nothing."""
    with lab(folder, **beside) as process:
        page, to_try = process.stdout.readline(), process.stdout.readline()
        wait_for(lambda: typed("status", "--check", folder=folder)[0] == 0)
        yield process
    assert page.startswith(f"status page: http://127.{octet(cluster(folder))}.0.1:4270/#token=")
    assert to_try.startswith("  open it: ")
    assert marked(folder) == []


def cluster(folder):
    return UUID((folder / ".haptera" / "lab" / "cluster").read_text().strip())


def marked(folder):
    """All that runs with this lab's mark, or with a file of its directory open as its log."""
    marks = (f"HAPTERA_LAB={cluster(folder)}", str(folder))
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            told = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
            told += b"".join(os.fsencode(os.readlink(process / "fd" / fd)) for fd in "12")
        except OSError:
            continue  # gone, or another user's
        if int(process.name) != os.getpid() and any(mark.encode() in told for mark in marks):
            found.append(process.name)
    return found


def test_ctrl_c_leaves_nothing_running_and_the_next_lab_is_the_same_cluster(folder):
    with running(folder):
        first = cluster(folder)
        assert marked(folder) != []
    with running(folder):
        assert cluster(folder) == first


def test_a_second_lab_in_the_same_directory_is_refused_and_disturbs_nothing(folder):
    with running(folder) as one:
        client = (folder / ".haptera" / "client.json").read_bytes()
        errors = told(
            f"this directory is in use by process {one.pid}",
            folder / ".haptera" / "lab" / "lab",
            "stop that process, or use another directory",
        )
        assert started(folder) == (1, "", errors)
        assert (folder / ".haptera" / "client.json").read_bytes() == client
        assert typed("status", "--check", folder=folder)[0] == 0


def test_a_site_file_of_another_cluster_is_refused(folder):
    with running(folder):
        pass
    (folder / "other.yaml").write_text(SITE.replace("tiny", "other"))
    assert started(folder, "other.yaml") == (
        1,
        "",
        told(
            "is of cluster tiny, not other",
            folder / ".haptera" / "parent",
            "give each cluster a directory of its own (--dir)",
        ),
    )


def test_a_site_file_that_is_not_there_leaves_no_trace(folder):
    assert started(folder, "none.yaml") == (
        1,
        "",
        told("cannot be read: No such file or directory", "none.yaml", "name a site file"),
    )
    assert [path.name for path in folder.iterdir()] == ["site.yaml"]


def test_a_check_cut_short_has_not_passed(folder):
    (folder / "check.sh").write_text("touch begun; sleep 1000\n")
    draw_cluster(folder)
    with subprocess.Popen(
        command("lab", "--dir", folder, "--site", "site.yaml", "--once"),
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_for((folder / "begun").exists)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=WAIT_S_MAX)
    assert (process.returncode, errors, marked(folder)) == (130, "", [])


@pytest.fixture
def drawn(folder):
    """The octet of a cluster that is drawn in the directory; no lab has run there."""
    return octet(draw_cluster(folder))


def test_a_bmcs_port_in_use_is_named(folder, drawn):
    with held(f"127.{drawn}.2.2", 4280):
        code, out, errors = started(folder)
    assert (code, out) == (1, "")
    assert errors.startswith("error: cannot listen: Address already in use")
    assert errors.endswith(
        f"  BMC of n2 at 127.{drawn}.2.2:4280\n"
        "  stop what uses it (ss -ltnp), or delete .haptera to begin with other addresses\n"
    )


def test_a_parent_that_cannot_start_is_told_with_its_reason(folder, drawn):
    with held(f"127.{drawn}.0.1", 4270):
        code, out, errors = started(folder)
    assert (code, out, marked(folder)) == (1, "", [])
    what, where, do = errors.splitlines()
    assert what.startswith("error: the parent does not start: ")
    assert f"127.{drawn}.0.1:4270/tcp: cannot listen: Address already in use" in what
    assert where == f"  {folder}/.haptera/parent/serve.log"
    assert do == "  fix this, then start the lab again"


@pytest.mark.long
def test_a_lab_whose_token_is_taken_back_goes_on(folder):
    with running(folder) as process:
        tokens = json.loads(typed("token", "list", "-o", "json", folder=folder)[1])
        (own,) = [one["id"] for one in tokens if one["scope"] == "admin"]
        assert typed("token", "revoke", own, folder=folder)[0] == 0
        said = iter(process.stdout.readline, "")
        assert any("the lab continues, Ctrl-C ends it" in line for line in said)
        assert process.poll() is None


@pytest.mark.campaign
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: apt install gcc")
def test_a_lab_whose_clock_jumps_past_the_end_of_its_token_goes_on(folder):
    ahead, library = folder / "ahead", folder / "clock_ahead.so"
    ahead.write_bytes(bytes(8))
    source = Path(__file__).with_name("clock_ahead.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    with running(folder, LD_PRELOAD=str(library), CLOCK_AHEAD=str(ahead)) as process:
        services = pids(folder, "python")
        with ahead.open("r+b") as file:
            file.write(struct.pack("=q", 2 * CLIENT_TTL_S))
        said = iter(process.stdout.readline, "")
        assert any("the lab continues, Ctrl-C ends it" in line for line in said)
        code, _, errors = typed("status", folder=folder)
        assert (code, errors.splitlines()[0]) == (1, "error: no valid token")
        # The next parent makes a token that is good by the clock as it is now.
        os.kill(int((folder / ".haptera/parent/parent.pid").read_text()), signal.SIGKILL)
        wait_for(lambda: typed("status", "--check", folder=folder)[0] == 0)
        assert process.poll() is None
        assert services.keys() <= pids(folder, "python").keys()


MODULES = "modules: {{labnode: {{}}, jobs: {{}}, service: {service}}}\n"


def test_a_module_is_disabled_enabled_with_settings_and_killed_and_services_live_on(folder):
    with running(folder):
        services = pids(folder, "python")
        assert len(pids(folder, "module service")) == 2

        want(folder, "{enabled: false}")
        wait_for(lambda: pids(folder, "module service") == {})
        wait_for(lambda: "run=stopped" in shown(folder, "n1") + shown(folder, "n2"))

        want(folder, "{settings: {grace_s: 2}}")
        wait_for(lambda: len(pids(folder, "module service")) == 2)
        wait_for(lambda: typed("status", "--check", folder=folder)[0] == 0)
        assert "applied=current" in shown(folder, "n1")

        killed = max(pids(folder, "module service"))
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: killed not in (now := pids(folder, "module service")) and len(now) == 2)
        wait_for(lambda: typed("status", "--check", folder=folder)[0] == 0)
        assert "killed by SIGKILL" in "".join(
            typed("chain", f"module:service@{node}", folder=folder)[1] for node in ("n1", "n2")
        )
        assert services.keys() <= pids(folder, "python").keys()


def want(folder, service):
    """Apply the site file with this desired of the module of services."""
    (folder / "site.yaml").write_text(SITE + MODULES.format(service=service))
    assert typed("apply", "site.yaml", folder=folder)[0] == 0


def shown(folder, node):
    return typed("get", f"module:service@{node}", folder=folder)[1]


def pids(folder, name):
    """The lab's processes of this name."""
    found = {int(pid): process_name(int(pid)) for pid in marked(folder)}
    return {pid: comm for pid, comm in found.items() if comm.startswith(name)}


def test_a_lab_comes_up_again_with_what_a_person_took_from_its_site_and_says_what_differs(folder):
    with running(folder):
        taken = typed("set", "n1", "power=off", "--unset", "agent", "--take", folder=folder)
        assert taken[0] == 0
        # The service on it stays desired, and waits.
        wait_for(lambda: typed("get", "node:n1 and power=off", folder=folder)[0] == 0)
    with lab(folder) as process:
        found = [process.stdout.readline().strip() for _ in range(6)]
        assert (
            "the state is unchanged: site.yaml is not applied, because others own some of it"
            in found
        )
        assert {"-node:n1 power=off  (user:cli)", "+node:n1 power=on"} <= {*found}
        assert "to apply all of the file: haptera apply --take site.yaml" in found
        wait_for(lambda: typed("get", "node:n1 and power=off", folder=folder)[0] == 0)
        # What is typed as it says has it all again.
        assert typed("apply", "--take", "site.yaml", folder=folder)[0] == 0
        wait_for(lambda: typed("status", "--check", folder=folder)[0] == 0)


def test_a_folder_that_is_mistyped_is_not_made(tmp_path):
    (tmp_path / "site.yaml").write_text("cluster: quick\n")
    words = ("lab", "--dir", tmp_path / "mistyped", "--site", tmp_path / "site.yaml")
    code, _, errors = typed(*words, folder=tmp_path)
    assert (code, errors.splitlines()[0]) == (1, "error: the folder does not exist")
    assert [one.name for one in tmp_path.iterdir()] == ["site.yaml"]
