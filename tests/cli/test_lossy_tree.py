"""Three levels of real processes in a network of their own: lossy, late, or parted."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.network import why_no_networks

LOSSY_S = 180

pytestmark = [
    pytest.mark.net,
    pytest.mark.campaign,
    pytest.mark.timeout(480),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root has a network namespace of its own"),
    pytest.mark.skipif(shutil.which("nft") is None, reason="nft loses the datagrams"),
]


def run_alone(module: str, *arguments: object) -> None:
    if (why := why_no_networks()) is not None:
        pytest.skip(why)
    inside = 'ip link set lo up && exec "$@"'
    program = [sys.executable, "-m", module, *map(str, arguments)]
    command = ["unshare", "--net", "sh", "-c", inside, "sh", *program]
    ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr[-6000:]}"


def test_no_agent_is_taken_for_lost_at_30_percent_loss_on_any_of_three_levels(tmp_path):
    run_alone("tests.cli.lossy_tree", tmp_path, LOSSY_S)


def test_whatever_comes_late_twice_and_in_another_order_all_comes_about_and_nobody_is_lost(
    tmp_path,
):
    run_alone("tests.cli.late_tree", tmp_path, 1)


def test_what_is_cut_off_in_either_direction_goes_on_moves_and_is_seen_again(tmp_path):
    run_alone("tests.cli.parted_tree", tmp_path)
