"""A parent that serves images over HTTPS, as in life, and small roots of this machine's files."""

import asyncio
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from haptera.api.requests.order import ServingLimits, ServingOrder
from haptera.api.routes.images import Images
from haptera.api.serving.server import Server, listen
from haptera.images.manifest import ImageManifest, sign
from haptera.images.parent import Parent
from haptera.model.entity import EntityId
from haptera.modules.image.store import ImageStore, manifest_of, store_of
from haptera.runtime.clock import wall_s
from haptera.runtime.identity.pki import (
    Authority,
    issue_images,
    issue_node,
    issue_parent,
    key_pem,
    make_request,
    new_key,
    open_authority,
    parse_request,
)
from haptera.runtime.network.tls import node_of, server_context, signs_images
from haptera.sdk import Target
from haptera.sdk.uplink import UPLINK, Uplink
from tests.network import NETWORK

HOST = f"{NETWORK}.16.1"
NODE = UUID(int=7)
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass
class Rig:
    """One cluster's authority, its store of images, and a node that may have those `wanted`.

    Those `made` are being built.
    """

    folder: Path
    wanted: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.authority: Authority = open_authority(self.folder / "parent", wall_s())
        self.signer = issue_images(self.authority, wall_s()).read_bytes()
        self.store: ImageStore = store_of(self.authority.directory)
        self.store.make()
        self.run_dir = self.folder / "node"
        self.run_dir.mkdir()
        self.identity = self._certified(self.run_dir / "identity.pem", 1)

    def keep(
        self,
        name: str,
        content: bytes,
        command: tuple[str, ...] = ("/init",),
        stop_signal: str = "SIGTERM",
        recipe: str = "",
    ) -> ImageManifest:
        """An image whose artefact is these bytes."""
        artefact = self.store.work / "artefact"
        artefact.write_bytes(content)
        told = ImageManifest(
            name, "", 0, machine(), command, stop_signal=stop_signal, recipe=recipe
        )
        number = self.store.number(name, 0)
        manifest = msgspec.structs.replace(manifest_of(artefact, told), number=number)
        self.store.keep(artefact, sign(manifest, self.signer))
        return manifest

    def parent(self, port: int) -> Parent:
        """How the node calls its parent."""
        ca = self.authority.ca_pem.decode("ascii")
        said = Uplink(HOST, port, ca, str(self.identity))
        (self.run_dir / UPLINK).write_bytes(msgspec.json.encode(said))
        return Parent(said)

    def another(self, parent: Parent, number: int) -> Parent:
        """How one more node calls this parent: the same in another incarnation."""
        identity = self._certified(self.folder / f"identity{number}.pem", number)
        return Parent(msgspec.structs.replace(parent.uplink, identity=str(identity)))

    def _certified(self, place: Path, incarnation: int) -> Path:
        key = new_key()
        request = parse_request(make_request(key))
        assert request is not None
        certified = issue_node(self.authority, request, NODE, incarnation, HOST, wall_s())
        place.write_bytes(key_pem(key) + certified)
        return place

    def target(self, image: str, digest: str, settings: object) -> Target:
        """The node's system that is to run an image."""
        self.wanted = [image]
        return Target(
            EntityId("system", "compute", "n1"),
            attributes={"node.address": HOST},
            values={"image": image},
            digest=digest,
            run_dir=self.run_dir,
            settings=settings,
        )

    @asynccontextmanager
    async def served(
        self, identity: Path | None = None, order: ServingOrder | None = None
    ) -> AsyncIterator[Parent]:
        """Serve the store, as the parent or as whoever this identity is of."""
        shown = issue_parent(self.authority, wall_s()) if identity is None else identity
        order = order or ServingOrder(lambda: ServingLimits(16))
        images = Images(self.store, self._wanted, order, self.made.__contains__)
        tls = server_context(shown, self.authority.ca_pem, ssl.CERT_REQUIRED)
        listener = listen(HOST, 0)
        port = listener.getsockname()[1]
        serving = asyncio.ensure_future(Server(images.app(), listener, tls).run())
        try:
            yield self.parent(port)
        finally:
            serving.cancel()
            await asyncio.wait([serving])

    def _wanted(self, certificate: dict[str, object] | None) -> list[str] | None:
        if signs_images(certificate, self.authority.cluster):
            return None
        told = node_of(certificate, self.authority.cluster)
        return self.wanted if told is not None and told[0] == NODE else []


def machine() -> str:
    """What this machine's own images are for."""
    return ARCHITECTURE.get(os.uname().machine, os.uname().machine)


def a_root(folder: Path, init: str, programs: tuple[str, ...] = ("/bin/sh", "/bin/sleep")) -> Path:
    """A root with a shell and `sleep`, or these programs, and this script as /init."""
    for program in programs:
        path = Path(program).resolve()
        for one in (path, *_libraries(path)):
            place = folder / str(one).lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(one, place)
        name = folder / program.lstrip("/")
        name.parent.mkdir(parents=True, exist_ok=True)
        if not name.exists():
            name.symlink_to(path)
    for one in ("proc", "dev", "sys", "run", "etc", "tmp"):
        (folder / one).mkdir(exist_ok=True)
    (folder / "etc/resolv.conf").touch()
    place = folder / "init"
    place.write_text(f"#!/bin/sh\n{init}\n")
    place.chmod(0o755)
    return folder


def squashed(folder: Path) -> bytes:
    """A root as an artefact."""
    place = folder.with_suffix(".squashfs")
    words = ["mksquashfs", folder, place, "-quiet", "-no-progress", "-noappend"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return place.read_bytes()


def _libraries(program: Path) -> list[Path]:
    """What a program is linked to, by the paths that the loader asks for."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return [Path(word) for word in said.split() if word.startswith("/")]


def needs(*tools: str) -> pytest.MarkDecorator:
    """Skips what needs a tool that is missing here."""
    missing = [one for one in tools if shutil.which(one) is None]
    return pytest.mark.skipif(bool(missing), reason=f"missing here: {', '.join(missing)}")
