"""Whatever opens a file in a daemon or a module is listed here; a name from outside never is.

Files that settings, desired values, devices or other users name are opened by `open_regular`, and
code among them is checked by `owned`. All else opens what haptera made or the kernel shows.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).resolve().parents[2] / "src/haptera"
# What runs by itself, for others. All else is a command, run by the person whose files it opens.
ROOMS: Final = ("api", "app", "controllers", "core", "daemon", "images", "keeping", "modules",
                "queue", "rest", "runtime", "sdk", "wire")  # fmt: skip
# What may be given a name from outside, since it looks at what is there.
CAREFUL: Final = {"modules/regular.py", "runtime/identity/private.py"}
# How often each other file opens by a name that is its own: below a folder that nobody else may
# write, as it is installed, or the kernel's.
OWN: Final = {
    "api/routes/page.py": 1,
    "app/fence.py": 1,
    "app/channels.py": 1,
    "app/lease.py": 5,
    "app/whole.py": 5,
    "daemon/cluster.py": 1,
    "daemon/executing/executor.py": 1,
    "daemon/executing/keeper.py": 1,
    "daemon/parent/client.py": 1,
    "daemon/queue/bounds.py": 1,
    "daemon/queue/container.py": 2,
    "daemon/queue/job_home.py": 2,
    "daemon/queue/job_logs.py": 1,
    "daemon/queue/remains.py": 1,
    "daemon/tree/replicas.py": 1,
    "keeping/cgroups.py": 9,
    "keeping/gate.py": 5,
    "keeping/home.py": 2,
    "keeping/job_keeper.py": 6,
    "keeping/keeper.py": 7,
    "keeping/limits_keeper.py": 4,
    "keeping/procfs.py": 2,
    "modules/console.py": 4,
    "modules/image/build.py": 4,
    "images/fetch.py": 3,
    "images/manifest.py": 1,
    "modules/image/module.py": 1,
    "modules/image/room.py": 1,
    "modules/image/store.py": 4,
    "modules/kept.py": 1,
    "modules/minos/__init__.py": 1,
    "modules/netboot/strangers.py": 2,
    "modules/qemu/machine.py": 1,
    "modules/redfish/exchange.py": 2,
    "modules/redfish/sessions.py": 2,
    "modules/replica/module.py": 1,
    "modules/replica/sockets.py": 1,
    "modules/sensors/kernel_log.py": 1,
    "modules/system/container.py": 5,
    "modules/system/home.py": 3,
    "modules/system/module.py": 2,
    "modules/system/staging.py": 1,
    "rest/unix_path.py": 1,
    "runtime/clock.py": 1,
    "runtime/enrolment/journal.py": 2,
    "runtime/identity/lock.py": 1,
    "runtime/identity/pki.py": 4,
    "runtime/network/own_certificate.py": 1,
    "runtime/network/peers.py": 1,
    "runtime/processes/confinement/capabilities.py": 1,
    "runtime/processes/confinement/confine.py": 1,
    "runtime/processes/confinement/confinement.py": 1,
    "runtime/processes/confinement/mounting.py": 4,
    "runtime/processes/forking.py": 1,
    "runtime/processes/output.py": 3,
    "runtime/processes/secrets.py": 1,
    "runtime/store/schema_sql.py": 1,
    "sdk/loop_watch.py": 1,
    "sdk/uplink.py": 1,
}
# What opens by a name that a person gave whose rights it has, and why no more is asked.
GIVEN: Final = {
    "daemon/parent/backup.py": (4, "a command's file, or the parent's own"),
    "daemon/tree/etcd.py": (1, "named where the parent is started"),
    "runtime/identity/sealing.py": (1, "named where the parent is started"),
    "modules/system/mounts.py": (4, "`attach`, which is code, says where: it may be a disk"),
}


def opening(call: ast.Call) -> bool:
    """Whether a call opens a file by its name."""
    match call.func:
        case ast.Name("open") | ast.Attribute(ast.Name("os" | "io" | "tarfile" | "gzip"), "open"):
            return True
        case ast.Attribute(_, "read_text" | "read_bytes" | "write_text" | "write_bytes"):
            return True
        case ast.Attribute(_, "open"):
            modes = [one.value for one in call.args if isinstance(one, ast.Constant)]
            return any(isinstance(one, str) and set(one) <= set("rwxab+") for one in modes)
    return False


def openings(text: str) -> int:
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return sum(map(opening, calls))


def found() -> Iterator[tuple[str, int]]:
    for room in ROOMS:
        for path in sorted((SOURCE / room).rglob("*.py")):
            name = str(path.relative_to(SOURCE))
            if name not in CAREFUL and (count := openings(path.read_text(encoding="utf-8"))):
                yield name, count


def test_whoever_opens_a_file_by_its_name_is_known() -> None:
    """A new one: use `open_regular` for a name from outside, else count it here."""
    assert dict(found()) == OWN | {name: count for name, (count, _) in GIVEN.items()}


@pytest.mark.parametrize(
    ("line", "is_opening"),
    [
        ("open(name)", True),
        ("os.open(name, os.O_RDONLY)", True),
        ("Path(name).read_text()", True),
        ("place.open('rb')", True),
        ("place.write_bytes(b'')", True),
        ("tarfile.open(name)", True),
        ("Store.open(home)", False),
        ("open_regular(place)", False),
    ],
)
def test_an_opening_is_known_by_its_form(line: str, is_opening: bool) -> None:
    assert openings(line) == int(is_opening)
