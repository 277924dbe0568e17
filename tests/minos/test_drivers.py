"""The drivers of a minOS, in which order, and their firmware; from a kernel as packages lay it."""

import lzma
from pathlib import Path

import pytest

from haptera.minos.build import DRIVERS, SETS
from haptera.minos.cpio import file
from haptera.minos.distribution import Kernel, drivers_of, find_kernel, firmware_of
from haptera.model.errors import HapteraError

TG3 = b"\x7fELF\0license=GPL\0firmware=tigon/tg3.bin\0firmware=tigon/tg3_tso.bin\0alias=a\0"


def test_drivers_come_behind_what_they_need_and_each_once(tmp_path: Path) -> None:
    for name in ("core", "bnxt_en", "mlx5_core"):
        (tmp_path / f"{name}.ko").write_bytes(name.encode())
    (tmp_path / "modules.dep").write_text("core.ko:\nbnxt_en.ko: core.ko\nmlx5_core.ko: core.ko\n")
    (tmp_path / "modules.builtin").write_text("kernel/loop.ko\n")
    kernel = Kernel("6.1", tmp_path / "vmlinuz", tmp_path)

    entries, order = drivers_of(kernel, ["bnxt_en", "loop", "mlx5_core"])

    named = ["core.ko", "bnxt_en.ko", "mlx5_core.ko"]
    assert order == [f"/lib/drivers/{name}" for name in named]
    assert [one.path for one in entries] == [f"lib/drivers/{name}" for name in named]
    with pytest.raises(HapteraError, match="has no driver 'tg3'"):
        drivers_of(kernel, ["tg3"])


@pytest.mark.parametrize("content", [TG3, lzma.compress(TG3)])
def test_firmware_that_a_driver_names_is_there_if_it_is_installed(
    content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "tigon").mkdir()
    (tmp_path / "tigon" / "tg3-1.2.bin").write_bytes(b"code")
    (tmp_path / "tigon" / "tg3.bin").symlink_to("tg3-1.2.bin")
    driver = file("lib/drivers/tg3.ko", content, "drivers")

    found, missing = firmware_of([driver], tmp_path)

    assert [(one.path, one.content) for one in found] == [("lib/firmware/tigon/tg3.bin", b"code")]
    assert missing == ["tigon/tg3_tso.bin"]


def test_no_firmware_is_taken_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"s3cret")
    names = (b"../secret", str(tmp_path / "secret").encode(), b"a/../../secret")
    content = b"".join(b"\0firmware=" + name for name in names) + b"\0"

    found, _ = firmware_of([file("a.ko", content, "drivers")], tmp_path / "firmware")

    assert found == []


def test_the_drivers_of_servers_are_those_of_the_default_and_more() -> None:
    assert SETS["servers"][: len(DRIVERS)] == DRIVERS
    try:
        kernel = find_kernel(None)
    except HapteraError as error:
        pytest.skip(str(error))
    entries, _ = drivers_of(kernel, SETS["servers"])
    named = {Path(one.path).name.partition(".")[0] for one in entries}
    assert named >= {"mlx5_core", "bnxt_en", "tg3", "ice", "i40e"}
