"""E12: two hundred jobs on a pool of real processes while everything fails."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.network import why_no_networks

WITHIN_S = 300


@pytest.mark.net
@pytest.mark.campaign
@pytest.mark.timeout(WITHIN_S + 60)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a network namespace of its own")
@pytest.mark.skipif(shutil.which("nft") is None, reason="nft loses the packets")
def test_e12_each_job_is_done_and_nothing_is_left_whatever_fails(tmp_path: Path) -> None:
    if (why := why_no_networks()) is not None:
        pytest.skip(why)
    inside = 'ip link set lo up && exec "$@"'
    chaos = [sys.executable, "-m", "tests.queue.chaos", str(tmp_path), str(WITHIN_S), "lossy"]
    command = ["unshare", "--net", "sh", "-c", inside, "sh", *chaos]
    ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr[-6000:]}"
