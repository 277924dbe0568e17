"""Layers by whoever wants out of the root: whiteouts, links, devices, names that lead elsewhere."""

import asyncio
import io
import os
import stat
import tarfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from haptera.kinds.inventory import FileSort, ImageFile, Inventory
from haptera.modules.image.module import build
from haptera.modules.system.mounts import Root
from haptera.sdk import Refused
from tests.modules.image_rig import Rig, a_root, needs
from tests.modules.test_image_import import a_tar, an_import, an_oci_layout

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.net,
    pytest.mark.skipif(os.geteuid() != 0, reason="buildah needs root here"),
    needs("buildah", "mksquashfs", "unsquashfs", "skopeo", "ldd"),
]
SECRET = b"what is outside of every root"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def base(tmp_path: Path) -> bytes:
    """A root as a layer, with files that later layers take away."""
    root = a_root(tmp_path / "root", "exit 0")
    for name in ("kept", "gone", "folder/old", "folder/older"):
        place = root / "srv" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(name)
    return a_tar(root)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside all roots, which nothing of an image is to read or change."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "victim").write_bytes(SECRET)
    return folder


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    one = tarfile.TarInfo(name)
    one.type, one.linkname = kind, target
    return one


def a_file(name: str) -> tarfile.TarInfo:
    one = tarfile.TarInfo(name)
    one.size, one.mode = len(SECRET[:4]), 0o755
    return one


def a_layer(members: Sequence[tarfile.TarInfo]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for one in members:
            tar.addfile(one, io.BytesIO(SECRET[:4]) if one.isreg() else None)
    return packed.getvalue()


def files(rig: Rig) -> dict[str, ImageFile]:
    read = msgspec.json.decode(rig.store.inventory("a") or b"", type=Inventory)
    return {one.path: one for one in read.files}


def test_what_a_later_layer_takes_away_is_not_in_the_image(
    rig: Rig, base: bytes, tmp_path: Path
) -> None:
    names = ("srv/.wh.gone", "srv/folder/.wh..wh..opq", "srv/folder/new", "srv/.wh.never")
    layout = an_oci_layout(tmp_path / "layout", base, a_layer([a_file(one) for one in names]))

    asyncio.run(build(an_import(rig, f"oci:{layout}:latest")))

    found = {path for path in files(rig) if path.startswith("/srv/")}
    assert found == {"/srv/kept", "/srv/folder", "/srv/folder/new"}


def hostile(outside: Path) -> dict[str, list[tarfile.TarInfo]]:
    """What leads out of a root if it is followed where the root is unpacked."""
    up = "../" * 30 + str(outside).lstrip("/")
    return {
        "a name with ..": [a_file(f"{up}/planted")],
        "a whole path": [a_file(f"{outside}/planted")],
        "a link, then a file below it": [link("srv/out", str(outside)), a_file("srv/out/planted")],
        "a link up, then a file below it": [link("srv/out", up), a_file("srv/out/planted")],
        "a link, then a file in its place": [
            link("srv/out", f"{outside}/victim"),
            a_file("srv/out"),
        ],
        "a hard link by a whole path": [link("srv/out", f"{outside}/victim", tarfile.LNKTYPE)],
        "a hard link up": [link("srv/out", f"{up}/victim", tarfile.LNKTYPE)],
        "a hard link through a link": [
            link("srv/out", str(outside)),
            link("srv/victim", "srv/out/victim", tarfile.LNKTYPE),
        ],
        "a hard link, then a file in its place": [
            link("srv/out", f"{up}/victim", tarfile.LNKTYPE),
            a_file("srv/out"),
        ],
        "a whiteout through a link": [link("srv/out", str(outside)), a_file("srv/out/.wh.victim")],
        "a whiteout of all through a link": [
            link("srv/out", str(outside)),
            a_file("srv/out/.wh..wh..opq"),
        ],
        "a whiteout of what is above": [a_file(f"{up}/.wh.victim"), a_file("srv/.wh...")],
    }


@pytest.mark.parametrize("how", hostile(Path("/")))
@pytest.mark.parametrize("form", ["layer", "tar"])
def test_no_layer_reads_or_changes_what_is_outside_of_its_root(
    rig: Rig, base: bytes, outside: Path, tmp_path: Path, form: str, how: str
) -> None:
    members = hostile(outside)[how]
    if form == "layer":
        layers = [a_layer([one]) for one in members]
        source = f"oci:{an_oci_layout(tmp_path / 'layout', base, *layers)}:latest"
    else:
        both = tmp_path / "root.tar"
        both.write_bytes(base)
        with tarfile.open(both, "a") as tar:
            for one in members:
                tar.addfile(one, io.BytesIO(SECRET[:4]) if one.isreg() else None)
        source = str(both)

    with suppress(Refused):
        asyncio.run(build(an_import(rig, source)))
        kept = files(rig).values()
        assert [one.path for one in kept if one.size_bytes == len(SECRET)] == []

    assert [(one.name, one.read_bytes()) for one in outside.iterdir()] == [("victim", SECRET)]
    assert outside.joinpath("victim").stat().st_nlink == 1


def test_a_device_in_an_image_is_listed_and_opens_nothing_on_a_node(
    rig: Rig, base: bytes, tmp_path: Path
) -> None:
    device = tarfile.TarInfo("srv/zero")
    device.type, device.mode, device.devmajor, device.devminor = tarfile.CHRTYPE, 0o666, 1, 5
    layout = an_oci_layout(tmp_path / "layout", base, a_layer([device]))
    asyncio.run(build(an_import(rig, f"oci:{layout}:latest")))
    assert files(rig)["/srv/zero"].sort is FileSort.CHARACTER
    kept = rig.store.manifest("a")
    assert kept is not None

    async def opened() -> None:
        root = Root(tmp_path / "mounted")
        await root.mount(rig.store.artefact(kept.digest), 1)
        try:
            assert (root.path / "srv/zero").is_char_device()
            with pytest.raises(PermissionError):
                (root.path / "srv/zero").open("rb")
            # Nor does one that root of the system makes there.
            os.mknod(root.path / "srv/own", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
            with pytest.raises(PermissionError):
                (root.path / "srv/own").open("rb")
        finally:
            await root.unmount()

    asyncio.run(opened())
