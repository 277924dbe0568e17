"""What is imported fits the room that there is, and what is no file keeps nobody waiting."""

import asyncio
import gzip
import os
import resource
import socket
import tarfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from haptera.model.entity import EntityId
from haptera.modules.image.build import IMPORTS_AT_ONCE
from haptera.modules.image.module import Image, ImageSettings, build, connect
from haptera.modules.image.room import StoreRoom
from haptera.modules.image.sources import SourceSort, source_of
from haptera.modules.regular import open_regular
from haptera.sdk import Refused, Target
from tests.modules.image_rig import Rig, a_root, needs, squashed

pytestmark = [pytest.mark.net, needs("buildah", "mksquashfs", "unsquashfs")]
MB = 1_000_000


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = a_root(tmp_path / "root", "exit 0")
    (folder / "sbin").mkdir(exist_ok=True)
    (folder / "sbin/init").symlink_to("/init")
    return folder


def an_import(rig: Rig, name: str, source: object, **settings: int) -> Image:
    entity = EntityId("image", name, None)
    values = {"source": str(source)}
    directory = rig.authority.directory
    return connect(
        Target(
            entity,
            values=values,
            run_dir=directory,
            settings=ImageSettings(**settings),
            session=asyncio.Semaphore(1),
        )
    )


def refusals(rig: Rig, *sources: object) -> list[str]:
    """Why each of them is not imported, all at once."""

    async def scenario() -> list[BaseException | None]:
        builds = (build(an_import(rig, f"i{at}", one)) for at, one in enumerate(sources))
        return await asyncio.gather(*builds, return_exceptions=True)

    return [str(one) for one in asyncio.run(scenario())]


def test_what_is_no_file_within_a_container_image_is_refused_before_a_tool_opens_it(
    tmp_path: Path,
) -> None:
    layout, tag = tmp_path / "layout", "oci:{}:latest"
    fifo = layout / "blobs" / "fifo"
    fifo.parent.mkdir(parents=True)
    (layout / "index.json").write_text("{}")
    assert source_of(tag.format(layout)).sort is SourceSort.CONTAINER
    os.mkfifo(fifo)
    with pytest.raises(Refused, match=f"{fifo} is a FIFO"):
        source_of(tag.format(layout))


def test_what_is_no_file_is_refused_and_keeps_no_other_import_waiting(
    rig: Rig, root: Path, tmp_path: Path
) -> None:
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(fifo)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
    words = "name a regular file"

    assert refusals(rig, *[fifo] * (IMPORTS_AT_ONCE + 1)) == [f"{fifo} is a FIFO: {words}"] * (
        IMPORTS_AT_ONCE + 1
    )
    assert refusals(
        rig,
        link,
        f"docker-archive:{fifo}",
        f"oci-archive:{fifo}:latest",
        tmp_path / "socket",
        "/dev/zero",
    ) == [
        f"{link} is a FIFO: {words}",
        f"{fifo} is a FIFO: {words}",
        f"{fifo} is a FIFO: {words}",
        f"{tmp_path}/socket is a socket: {words}",
        f"/dev/zero is a device: {words}",
    ]
    asyncio.run(build(an_import(rig, "a", root)))
    assert rig.store.manifest("a") is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
@pytest.mark.parametrize("form", ["{}", "oci-archive:{}:latest"])
def test_what_others_may_change_makes_no_image(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o755)
    (folder / "root.tar").write_bytes(b"")
    source = form.format(folder / "root.tar")
    assert source_of(source).place
    os.chown(folder, 65_534, 65_534)
    with pytest.raises(Refused, match=f"{folder} belongs to user 65534"):
        source_of(source)
    os.chown(folder, 0, 0)
    (folder / "root.tar").chmod(0o666)
    with pytest.raises(Refused, match="others than its owner may write"):
        source_of(source)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_a_recipe_that_others_may_change_is_not_carried_out(rig: Rig, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe"
    recipe.mkdir(mode=0o755)
    (recipe / "Dockerfile").write_text("FROM scratch\n")
    (recipe / "Dockerfile").chmod(0o666)
    one = an_import(rig, "a", "/")
    one = replace(one, target=replace(one.target, values={"recipe": str(recipe)}))
    with pytest.raises(Refused, match="others than its owner may write"):
        asyncio.run(build(one))


def test_a_file_of_holes_is_refused_by_its_size_before_it_is_copied(
    rig: Rig, root: Path, tmp_path: Path
) -> None:
    place = tmp_path / "root.squashfs"
    squashed(root)
    os.truncate(place, 3 << 30)

    with pytest.raises(Refused, match=r"it takes more than 64.0 MB, all that is left of the quota"):
        asyncio.run(build(an_import(rig, "a", place, quota_mb=64)))


def test_a_copy_has_the_holes_of_its_source(tmp_path: Path) -> None:
    place, copied = tmp_path / "holes", tmp_path / "copied"
    with place.open("wb") as file:
        file.write(b"begin")
        file.seek(1 << 30)
        file.write(b"middle")
        file.truncate(3 << 30)

    with open_regular(place) as file:
        StoreRoom(tmp_path).copy(file, copied)

    assert copied.stat().st_size == 3 << 30
    assert copied.stat().st_blocks * 512 < MB
    with copied.open("rb") as file:
        assert file.read(5) == b"begin"
        file.seek(1 << 30)
        assert file.read(7) == b"middle\0"


def test_an_archive_is_not_unpacked_to_the_disk(rig: Rig, root: Path, tmp_path: Path) -> None:
    """So what it unpacks to is of no account, but for what is left of it when it is packed."""
    (root / "zeros").write_bytes(bytes(100 * MB))
    place = tmp_path / "root.tar.gz"
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(root, arcname=".")
    place.write_bytes(gzip.compress(packed.getvalue(), 1))

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50 * MB, hard))
    try:
        asyncio.run(build(an_import(rig, "a", place, quota_mb=40)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    kept = rig.store.manifest("a")
    assert kept is not None
    assert kept.size_bytes < 40 * MB


@pytest.mark.parametrize("form", ["folder", "tar"])
def test_a_tool_writes_no_more_than_is_left_of_the_quota(
    rig: Rig, root: Path, tmp_path: Path, form: str
) -> None:
    (root / "large").write_bytes(os.urandom(20 * MB))
    place = root
    if form == "tar":
        place = tmp_path / "root.tar"
        with tarfile.open(place, mode="w") as tar:
            tar.add(root, arcname=".")

    with pytest.raises(Refused, match=r"it takes more than 2.0 MB, all that is left of the quota"):
        asyncio.run(build(an_import(rig, "a", place, quota_mb=2)))
    assert [*rig.store.work.iterdir()] == []


def test_the_rest_of_the_disk_is_kept_for_the_parents_state(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    place = tmp_path / "source"
    place.write_bytes(b"some")
    room = StoreRoom(tmp_path, disk_free_bytes_min=disk.f_blocks * disk.f_frsize + 1)

    with open_regular(place) as file, pytest.raises(Refused, match="kept for the parent's state"):
        room.copy(file, tmp_path / "copied")
    with pytest.raises(Refused, match=r"and it needs 4000000.0 MB"):
        StoreRoom(tmp_path).check_disk(4_000_000 * MB)
