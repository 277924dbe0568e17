"""Images from elsewhere, by real tools: each way leads to the same files, or says what is wrong."""

import asyncio
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import msgspec
import pytest

from haptera.kinds.inventory import Inventory
from haptera.model.entity import EntityId
from haptera.modules.image.module import Image, ImageSettings, build, connect
from haptera.modules.image.sources import SourceSort, source_of
from haptera.sdk import Refused, Target
from tests.modules.image_rig import Rig, a_root, machine, needs, squashed

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.net,
    pytest.mark.skipif(os.geteuid() != 0, reason="buildah needs root here"),
    needs("buildah", "mksquashfs", "unsquashfs", "skopeo", "ldd"),
]
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
OTHER = "arm64" if machine() == "amd64" else "amd64"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with an owner that is not root, and an init by a link."""
    folder = a_root(tmp_path / "root", "exit 0")
    (folder / "sbin").mkdir(exist_ok=True)
    (folder / "sbin/init").symlink_to("/init")
    (folder / "etc/owned").write_text("by another")
    os.chown(folder / "etc/owned", 7, 8)
    (folder / "etc/owned").chmod(0o4640)
    folder.chmod(0o755)
    return folder


def an_import(rig: Rig, source: str, **settings: int) -> Image:
    entity = EntityId("image", "a", None)
    return connect(
        Target(
            entity,
            values={"source": source},
            run_dir=rig.authority.directory,
            settings=ImageSettings(**settings),
            session=asyncio.Semaphore(1),
        )
    )


def files_of(rig: Rig) -> list[object]:
    read = msgspec.json.decode(rig.store.inventory("a") or b"", type=Inventory)
    return [one for one in read.files if one.path not in ("/dev", "/proc", "/sys", "/run")]


def a_tar(root: Path) -> bytes:
    """The root as one layer."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(root, arcname=".")
    return packed.getvalue()


def an_oci_layout(place: Path, *layers: bytes, architecture: str | None = None) -> Path:
    """As the image-layout specification has it: blobs by digest, and an index."""
    blobs = place / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(content: bytes, media: str) -> dict[str, object]:
        sha256 = hashlib.sha256(content).hexdigest()
        (blobs / sha256).write_bytes(content)
        return {"mediaType": media, "digest": f"sha256:{sha256}", "size": len(content)}

    config = {
        "architecture": architecture or machine(),
        "os": "linux",
        "config": {"Cmd": ["/init"], "Env": ["A=b"], "StopSignal": "SIGINT"},
        "rootfs": {"type": "layers", "diff_ids": [blob(one, LAYER)["digest"] for one in layers]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blob(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json"),
        "layers": [blob(one, LAYER) for one in layers],
    }
    named = {**blob(json.dumps(manifest).encode(), MANIFEST)}
    named["annotations"] = {"org.opencontainers.image.ref.name": "latest"}
    (place / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [named]}))
    (place / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    return place


@pytest.mark.parametrize("form", ["folder", "tar", "tar.gz", "squashfs"])
def test_a_root_that_says_nothing_of_itself_runs_its_init(rig: Rig, root: Path, form: str) -> None:
    asyncio.run(build(an_import(rig, str(root))))
    whole = files_of(rig)

    place = root.with_name(f"root.{form}")
    match form:
        case "folder":
            place = root
        case "squashfs":
            squashed(root)
        case _:
            content = a_tar(root)
            place.write_bytes(gzip.compress(content) if form == "tar.gz" else content)
    asyncio.run(build(an_import(rig, str(place))))

    kept = rig.store.manifest("a")
    assert kept is not None
    assert (kept.command, kept.architecture, kept.recipe, kept.stop_signal) == (
        *(("/sbin/init",), machine(), str(place), "SIGTERM"),
    )
    assert files_of(rig) == whole
    assert [*rig.store.work.iterdir()] == []


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], str]]:
    """What an OCI layout has, by the protocol of registries."""
    layouts: list[Path] = []

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            what, _, name = self.path.rpartition("/")
            body, media = b"{}", "application/octet-stream"
            if what.endswith("/manifests"):
                index = json.loads((layouts[0] / "index.json").read_bytes())
                name, media = index["manifests"][0]["digest"], MANIFEST
            if what.startswith("/v2/roots/"):
                body = (layouts[0] / "blobs/sha256" / name.removeprefix("sha256:")).read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    place = f"127.0.0.1:{server.server_port}"
    conf = tmp_path / "registries.conf"
    conf.write_text(f'[[registry]]\nlocation = "{place}"\ninsecure = true\n')
    monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(conf))
    threading.Thread(target=server.serve_forever).start()

    def serve(layout: Path) -> str:
        layouts.append(layout)
        return f"docker://{place}/roots/a:latest"

    yield serve
    server.shutdown()
    server.server_close()


def test_an_image_of_the_oci_keeps_what_it_says_of_itself_however_it_comes(
    rig: Rig, root: Path, registry: Callable[[Path], str]
) -> None:
    asyncio.run(build(an_import(rig, str(root))))
    whole = files_of(rig)
    layout = an_oci_layout(root.with_name("layout"), a_tar(root))
    archives = [f"{form}-archive:{root.with_name(form)}.tar" for form in ("docker", "oci")]
    for one in archives:
        subprocess.run(["skopeo", "copy", "--quiet", f"oci:{layout}:latest", one], check=True)

    for source in (f"oci:{layout}:latest", *archives, registry(layout)):
        asyncio.run(build(an_import(rig, source)))
        kept = rig.store.manifest("a")
        assert kept is not None
        assert (kept.command, kept.architecture, kept.stop_signal, kept.recipe) == (
            *(("/init",), machine(), "SIGINT", source),
        )
        assert "A=b" in kept.environment
        assert files_of(rig) == whole


def test_the_architecture_is_the_one_that_the_image_is_for(rig: Rig, root: Path) -> None:
    """Nodes of another one refuse it before they fetch it."""
    layout = an_oci_layout(root.with_name("layout"), a_tar(root), architecture=OTHER)
    asyncio.run(build(an_import(rig, f"oci:{layout}:latest")))
    kept = rig.store.manifest("a")
    assert kept is not None
    assert kept.architecture == OTHER


def test_what_cannot_be_imported_says_why_and_leaves_what_was_there(rig: Rig, root: Path) -> None:
    asyncio.run(build(an_import(rig, str(root))))
    before = rig.store.signed("a")
    layout = an_oci_layout(root.with_name("layout"), a_tar(root))
    (empty := root.with_name("empty")).mkdir()
    torn, rubbish = root.with_name("torn.tar.gz"), root.with_name("rubbish")
    torn.write_bytes(gzip.compress(a_tar(root))[:-4_000])
    rubbish.write_bytes(b"neither of them" * 1_000)
    cut = root.with_name("cut.squashfs")
    cut.write_bytes(squashed(root)[:5_000])
    blobs = layout / "blobs/sha256"

    for source, words in (
        (f"oci:{layout}:none", "no descriptor found"),
        (f"oci:{layout}@sha256:00", "No such file or directory"),
        ("docker://127.0.0.1:9/roots@sha256:0123", "invalid reference format"),
        ("docker://127.0.0.1:9/roots:latest", "connection refused"),
        ("/nowhere/a.tar", "/nowhere/a.tar: No such file or directory: name what"),
        ("a.tar", "a.tar is no whole path"),
        (str(empty), "has no /sbin/init that can be run: import a root with an init"),
        (str(torn), "cannot be unpacked"),
        (str(rubbish), "mksquashfs ended with status 1"),
        (str(cut), "its files cannot be read"),
    ):
        with pytest.raises(Refused, match=words):
            asyncio.run(build(an_import(rig, source)))
        assert rig.store.signed("a") == before
        assert [*rig.store.work.iterdir()] == []

    largest = max(blobs.iterdir(), key=lambda one: one.stat().st_size)
    largest.write_bytes(largest.read_bytes().replace(b"by another", b"by whoever"))
    with pytest.raises(Refused, match=r"[Dd]igest did not match|does not match"):
        asyncio.run(build(an_import(rig, f"oci:{layout}:latest")))
    assert rig.store.signed("a") == before


def test_a_store_that_is_full_takes_no_more_until_there_is_room(rig: Rig, root: Path) -> None:
    (root / "large").write_bytes(os.urandom(1_500_000))
    with pytest.raises(Refused, match=r"takes more than 1.0 MB, all that is left of .*image gc"):
        asyncio.run(build(an_import(rig, str(root), quota_mb=1)))
    assert rig.store.manifest("a") is None
    assert [*(rig.store.path / "sha256").iterdir()] == []

    asyncio.run(build(an_import(rig, str(root), quota_mb=8)))
    asyncio.run(build(an_import(rig, str(root), quota_mb=8)))  # the same once more takes nothing
    shutil.copytree(root, other := root.with_name("other"), symlinks=True)
    (other / "large").write_bytes(os.urandom(7_000_000))
    with pytest.raises(Refused, match="raise quota_mb in the settings of the module image"):
        asyncio.run(build(an_import(rig, str(other), quota_mb=8)))
    asyncio.run(build(an_import(rig, str(other), quota_mb=16)))


def test_a_source_is_told_by_how_it_is_written(root: Path, tmp_path: Path) -> None:
    assert source_of(str(root)).sort is SourceSort.FOLDER
    assert source_of("docker://debian:12").sort is SourceSort.CONTAINER
    (tmp_path / "layout").mkdir()
    assert source_of(f"oci:{tmp_path}/layout:latest").sort is SourceSort.CONTAINER
    with pytest.raises(Refused, match="is no whole path"):
        source_of("containers-storage:debian")
