"""What is in an image, read from real squashfs files, beside what the file system says."""

import hashlib
import os
import stat
from pathlib import Path

import msgspec
import pytest

from haptera.kinds.inventory import FileSort, ImageFile, Inventory
from haptera.modules.image.difference import (
    Aspect,
    FileChange,
    ImageDifference,
    PackageChange,
    difference,
)
from haptera.modules.image.inventory import Contents, contents_of
from haptera.sdk import HapteraError
from tests.modules.image_rig import needs, squashed

pytestmark = needs("mksquashfs", "unsquashfs")

STATUS = """\
Package: libc6
Status: install ok installed
Version: 2.36-9
Description: a library
 Version: of what is not meant

Package: gone
Status: deinstall ok config-files
Version: 1.0
"""
# An ELF header for 64-bit ARM.
ARM = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(44)


def filled(folder: Path) -> Path:
    """Files of all sorts, with names that a list of lines could be misled by."""
    folder.mkdir()
    for name in ("plain", "sp ace", 'q"uo\\te', "new\nline R 0 755 0 0 9 0", "-pf", "ünï"):
        (folder / name).write_text(f"this is {name}")
    os.link(folder / "plain", folder / "again")
    (folder / "link").symlink_to("sp ace")
    (folder / "empty").touch()
    (folder / "deep/er").mkdir(parents=True)
    (folder / "deep/er/tool").write_bytes(ARM)
    (folder / "deep/er/tool").chmod(0o4755)
    os.mkfifo(folder / "fifo")
    (folder / "var/lib/dpkg").mkdir(parents=True)
    (folder / "var/lib/dpkg/status").write_text(STATUS)
    return folder


def read(folder: Path) -> Contents:
    squashed(folder)
    return contents_of(folder.with_suffix(".squashfs"))


def walked(folder: Path) -> list[ImageFile]:
    """The same by the plainest way."""
    found = []
    for place in (folder, *folder.rglob("*")):
        one, content, size, sort = place.lstat(), None, 0, FileSort.FOLDER
        if place.is_symlink():
            sort, content = FileSort.LINK, os.readlink(place)
        elif stat.S_ISFIFO(one.st_mode):
            sort = FileSort.FIFO
        elif place.is_file():
            sort, size = FileSort.FILE, one.st_size
            content = hashlib.sha256(place.read_bytes()).hexdigest()
        path = "/" + str(place.relative_to(folder)).removeprefix(".")
        mode = stat.S_IMODE(one.st_mode)
        found.append(ImageFile(path, sort, mode, one.st_uid, one.st_gid, size, content))
    return sorted(found, key=lambda one: one.path)


def test_all_files_of_an_artefact_are_read_as_the_file_system_has_them(tmp_path: Path) -> None:
    folder = filled(tmp_path / "root")

    found = read(folder)
    assert found.inventory("sha256:0") == Inventory("sha256:0", walked(folder), {"libc6": "2.36-9"})
    assert found.machines == {"arm64": 1}


def test_what_is_kept_reads_back(tmp_path: Path) -> None:
    kept = read(filled(tmp_path / "root")).inventory("sha256:0")
    assert msgspec.json.decode(msgspec.json.encode(kept), type=Inventory) == kept


def test_links_are_followed_as_they_lead_inside(tmp_path: Path) -> None:
    folder = tmp_path / "root"
    (folder / "usr/sbin").mkdir(parents=True)
    (folder / "usr/lib").mkdir()
    (folder / "usr/lib/systemd").touch()
    (folder / "sbin").symlink_to("usr/sbin")
    (folder / "usr/sbin/init").symlink_to("../lib/systemd")
    (folder / "usr/sbin/same").symlink_to("/sbin/init")
    (folder / "usr/sbin/loop").symlink_to("loop")

    found = read(folder)
    systemd = found.files["/usr/lib/systemd"]
    for path in ("/sbin/init", "sbin/same", "/usr/../../sbin/./init"):
        assert found.resolved(path) == systemd
    assert found.resolved("/sbin/loop") is None
    assert found.resolved("/none") is None
    assert found.resolved("/") == found.files["/"]


@pytest.mark.parametrize("keep", [0, 50, 4_000])
def test_what_is_no_whole_squashfs_is_refused_by_name(tmp_path: Path, keep: int) -> None:
    (folder := tmp_path / "root").mkdir()
    (folder / "large").write_bytes(os.urandom(20_000))
    place = tmp_path / "cut"
    place.write_bytes(squashed(folder)[:keep])

    with pytest.raises(HapteraError, match="its files cannot be read") as refused:
        contents_of(place)
    assert refused.value.where == str(place)


def a_file(path: str, content: str, mode: int = 0o644, uid: int = 0) -> ImageFile:
    return ImageFile(path, FileSort.FILE, mode, uid, 0, len(content), content)


def test_images_differ_in_packages_and_in_files_by_content_mode_and_owner() -> None:
    link = ImageFile("/sort", FileSort.LINK, 0o777, 0, 0, 0, "elsewhere")
    same, gone, new = a_file("/same", "x"), a_file("/gone", "four"), a_file("/new", "sixsix")
    before = [same, gone, a_file("/all", "a"), a_file("/mode", "m", 0o755), link]
    after = [same, new, a_file("/all", "bc", 0o600, 7), a_file("/mode", "m"), a_file("/sort", "")]
    a = Inventory("sha256:a", before, {"bash": "5", "gone": "1", "libc6": "2.36-9"})
    b = Inventory("sha256:b", after, {"bash": "5", "libc6": "2.36-10", "new": "3"})

    found = difference(a, b)
    assert found == ImageDifference(
        [
            PackageChange("gone", "1", None),
            PackageChange("libc6", "2.36-9", "2.36-10"),
            PackageChange("new", None, "3"),
        ],
        [new],
        [gone],
        [
            FileChange(before[2], after[2], (Aspect.CONTENT, Aspect.MODE, Aspect.OWNER)),
            FileChange(before[3], after[3], (Aspect.MODE,)),
            FileChange(link, after[4], (Aspect.SORT,)),
        ],
    )
    assert found.size_bytes == 6 - 4 + 1
    assert difference(a, a) == ImageDifference([], [], [], [])
