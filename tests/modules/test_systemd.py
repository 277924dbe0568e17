"""A system whose init is this machine's systemd: it supervises, and ends when it is asked to."""

import os
import shutil
from pathlib import Path

import pytest

from haptera.kinds.system import SystemRun
from haptera.modules.system.bundle import SYSTEMD_STOP
from haptera.modules.system.module import look_run, stop
from tests.lab.rig import until
from tests.modules.image_rig import Rig, a_root, needs, squashed
from tests.modules.test_system_live import init_of, lived, own_mounts

SYSTEMD = Path("/usr/lib/systemd")
PROGRAMS = ("/bin/sh", "/bin/sleep", "/bin/touch", "/bin/systemctl", f"{SYSTEMD}/systemd")

pytestmark = [
    pytest.mark.net,
    pytest.mark.campaign,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts and containers need root"),
    needs("runc", "mksquashfs", "ldd", "systemctl"),
    pytest.mark.usefixtures(own_mounts.__name__),
]

# Without what a whole distribution starts beside it.
TARGET = """\
[Unit]
Wants=web.service
"""
SERVICE = """\
[Unit]
DefaultDependencies=no
Conflicts=shutdown.target
Before=shutdown.target

[Service]
ExecStart=/serve
ExecStop=/bin/sh -c 'echo ended >>/run/said'
Restart=always
RestartSec=0
"""
# Ends at once the first time.
SERVE = """\
#!/bin/sh
echo begun >>/run/said
[ -e /run/once ] && exec sleep 1000
touch /run/once
exit 1
"""


async def test_systemd_starts_what_fell_over_and_ends_its_services_before_itself(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path)
    root = tmp_path / "a"
    (root / "usr/lib").mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    a_root(root, "", PROGRAMS)
    shutil.copytree(SYSTEMD, root / "usr/lib/systemd", symlinks=True, dirs_exist_ok=True)
    units = root / "etc/systemd/system"
    units.mkdir(parents=True)
    (units / "default.target").write_text(TARGET)
    (units / "web.service").write_text(SERVICE)
    (root / "serve").write_text(SERVE)
    (root / "serve").chmod(0o755)
    rig.keep("a", squashed(root), (f"{SYSTEMD}/systemd",), SYSTEMD_STOP)

    async with lived(rig) as node:
        one = await node.runs("a")
        begun = init_of(one)

        said = Path(f"/proc/{begun}/root") / "run/said"
        await until(lambda: said.exists() and said.read_text() == "begun\nbegun\n")
        assert (await look_run(one), init_of(one)) == (SystemRun.RUNNING, begun)
        with said.open() as held:
            await stop(one)
            assert held.read() == "begun\nbegun\nended\n"
        assert await look_run(one) is SystemRun.STOPPED
