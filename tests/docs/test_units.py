"""The systemd units: they are in order, and as little exposed as the page on installing says."""

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
