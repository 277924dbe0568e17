"""No agent is taken for lost because 30 % of all datagrams are, on three levels."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.network import why_no_networks

# As long at the desk as one likes: `tests/cli/lossy_tree.py`.
LOSSY_S = 45


@pytest.mark.net
@pytest.mark.campaign
@pytest.mark.timeout(480)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a network namespace of its own")
@pytest.mark.skipif(shutil.which("nft") is None, reason="nft loses the datagrams")
def test_no_agent_is_taken_for_lost_at_30_percent_loss_on_any_of_three_levels(tmp_path):
    if (why := why_no_networks()) is not None:
        pytest.skip(why)
    inside = 'ip link set lo up && exec "$@"'
    lossy = [sys.executable, "-m", "tests.cli.lossy_tree", str(tmp_path), str(LOSSY_S)]
    command = ["unshare", "--net", "sh", "-c", inside, "sh", *lossy]
    ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr[-6000:]}"
