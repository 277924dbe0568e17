"""No test mounts anything where other programs of the machine would see it, and keep."""

import os
import subprocess

import pytest

from tests.mounts import is_private


@pytest.mark.net
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_what_a_test_mounts_is_seen_by_its_own_processes_alone(tmp_path) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody have mounts of its own")
    assert is_private()
    subprocess.run(["mount", "-t", "tmpfs", "none", tmp_path], check=True)
    mounted = ["mountpoint", "--quiet", tmp_path]
    outside = ["nsenter", f"--mount=/proc/{os.getppid()}/ns/mnt", *mounted]
    assert subprocess.run(mounted).returncode == 0
    assert subprocess.run(outside).returncode != 0
    subprocess.run(["umount", tmp_path], check=True)
