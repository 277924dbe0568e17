"""Two virtual machines come from off to an agent by IPMI and the network, as the demo has them."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.rig import command

ROOT = Path(__file__).parents[2]
RACK = ROOT / "examples/rack"

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(1500)]


def test_the_rack_comes_up_and_heals(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("virtual machines on a bridge need root")
    need = [str(ROOT / "tools/need"), *(RACK / "needs").read_text().split()]
    lacking = subprocess.run(need, capture_output=True, text=True, check=False)
    if lacking.returncode != 0:
        pytest.skip(lacking.stderr.strip())
    minos = ["minos", "build", "--driver", "virtio_net", "--driver", "virtio_pci"]
    subprocess.run(command(*minos, "--dir", tmp_path), check=True, capture_output=True)
    lab = ["lab", "--site", RACK / "site.yaml", "--dir", tmp_path, "--once"]
    done = subprocess.run(command(*lab), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["all held"]), (
        done.stdout + done.stderr
    )
