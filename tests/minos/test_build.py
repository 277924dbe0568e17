"""A minOS of this machine's packages: the same bytes twice, and an agent that starts in it."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from haptera.minos.build import LEVELS, build, read
from haptera.minos.distribution import find_kernel
from haptera.model.errors import HapteraError
from tests.docs.test_typed_pages import BUILT, FOUND, as_quoted
from tests.transcripts.playing import named

# What it consists of.
NAMES = ("kernel", "initramfs")


def test_a_kernel_that_is_not_installed_is_named_and_so_is_one_of_this_architecture() -> None:
    with pytest.raises(HapteraError, match=r"there is no kernel 0\.0-none") as refused:
        find_kernel("0.0-none")
    assert refused.value.do == "apt install linux-image-$(dpkg --print-architecture)"


def test_where_there_is_no_minos_it_is_said_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(HapteraError, match="haptera minos build"):
        read(tmp_path)


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_what_the_tutorial_builds_and_boots_is_the_same_elsewhere_and_under_other_settings(
    tmp_path: Path,
) -> None:
    _need_packages()
    (home := tmp_path / "a").mkdir()
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for quoted in FOUND[BUILT]:
        typed = subprocess.run(
            ["bash", "-o", "pipefail", "-c", quoted.command],
            cwd=home,
            env={**os.environ, "PATH": programs},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert as_quoted(quoted, typed.returncode, named(typed.stdout)), typed
    first, second = home / ".haptera" / "parent" / "minos", tmp_path / "deeper" / "b"
    made = read(first)
    on_another_date = ["faketime", "2031-02-03 04:05:06"]
    command = [*on_another_date, sys.executable, "-m", "haptera", "minos", "build"]
    subprocess.run(
        [*command, "--folder", str(second)],
        check=True,
        capture_output=True,
        cwd="/",
        umask=0o077,
        env={**os.environ, "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"},
    )
    assert made == read(second)
    assert made.sha256 == {name: _digest(first / name) for name in NAMES}
    assert made.sha256 == {name: _digest(second / name) for name in NAMES}
    assert made.size_bytes <= 14_000_000
    assert (made.ssh, [part for part in made.parts if part.why == "ssh"]) == ((), [])
    weak = build(tmp_path / "weak", made.drivers, None, level=LEVELS[0])
    assert weak.size_bytes > made.size_bytes
    assert _unpacked(tmp_path / "weak") == _unpacked(first)
    if os.geteuid() == 0:
        _see_that_an_agent_starts(first, tmp_path / "root")


def _see_that_an_agent_starts(folder: Path, root: Path) -> None:
    root.mkdir()
    unpack = f"zstd -dcq {folder / 'initramfs'} | cpio -idm --quiet"
    subprocess.run(["bash", "-o", "pipefail", "-c", unpack], cwd=root, check=True)
    told = subprocess.run(
        ["chroot", str(root), "/bin/python3", "-m", "haptera", "agent", "--help"],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": "/app"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--invitation" in told.stdout, told.stderr


def _need_packages() -> None:
    try:
        find_kernel(None)
    except HapteraError as error:
        pytest.skip(str(error))
    for tool in ("zstd", "cpio", "dpkg-query", "qemu-system-x86_64", "faketime"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing: apt install zstd cpio qemu-system-x86 faketime")


def _unpacked(folder: Path) -> bytes:
    return subprocess.run(
        ["zstd", "-dcq", folder / "initramfs"], check=True, stdout=subprocess.PIPE
    ).stdout


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
