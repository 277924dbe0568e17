"""The systemd units: they are in order, and as little exposed as the page on installing says."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNITS = ROOT / "src" / "haptera" / "cli" / "units"
PAGE = (ROOT / "docs" / "tutorial" / "install.md").read_text()


@pytest.mark.parametrize("name", ["parent", "agent"])
def test_a_unit_is_as_exposed_as_the_page_says(name: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here: apt install systemd")
    unit = UNITS / f"haptera-{name}.service"
    told = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", unit],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    measured = re.findall(r"Overall exposure level for \S+: (\d+\.\d)", told)
    said = re.findall(r"(?:rates its exposure|unit is rated) (\d+\.\d)", PAGE)

    assert measured == [said[["parent", "agent"].index(name)]]


def test_what_a_parent_of_root_is_given_is_known_to_systemd(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here: apt install systemd")
    unit = tmp_path / "haptera-parent.service"
    text = (UNITS / unit.name).read_text().replace("/opt/haptera/bin/haptera", "/bin/true")
    unit.write_text(text.replace("User=haptera\nGroup=haptera\n", ""))
    drop_in = tmp_path / f"{unit.name}.d" / "user.conf"
    drop_in.parent.mkdir()
    shutil.copy(UNITS / "root.conf", drop_in)
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", unit],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    assert (verified.returncode, verified.stderr) == (0, "")
