"""Staging: an image is fetched, verified and mounted on the node, while another one runs."""

import asyncio
import fcntl
import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from haptera.images.fetch import SEEN, ArtefactSource, BeingBuiltError
from haptera.images.manifest import DIGEST, ImageManifest, digest_of
from haptera.images.parent import Parent
from haptera.modules.system.bundle import check_command
from haptera.modules.system.home import Staged, SystemHome, home_of
from haptera.modules.system.mounts import Root
from haptera.modules.system.one_system import System
from haptera.sdk import HapteraError, Refused, Target, uplink

# Beside those of systems, in the folder of the agent.
IMAGES_OF_JOBS: Final = "job-images"
# How Linux names what images are for.
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}
# The interval between requests to the parent while an image is not built yet.
BUILT_ASKED_EVERY_S: Final = 5.0
# How often one that stages asks whether another still does.
ALONE_ASKED_EVERY_S: Final = 0.1


async def stage_image(one: System, reference: str) -> None:
    """Have this image mounted on this node, ready to be started.

    Raises:
        Refused: it is none for this node, or cannot be run.
        HapteraError: it is not what the cluster's authority has signed, or cannot be had or
            mounted now.
        OSError: the disk does not take it.
    """
    source = ArtefactSource(Parent(uplink(one.target.run_dir)), one.target.run_dir / "images")
    manifest = await manifest_once_built(one.target, source, reference)
    with one.refusing(reference):
        check_fits(manifest)
    async with alone(one.target.run_dir):
        await _mount(one, reference, source, manifest)


async def manifest_once_built(
    target: Target, source: ArtefactSource, reference: str
) -> ImageManifest:
    """The manifest of an image; one that is being built is waited for, unless it is unwanted.

    Raises:
        HapteraError: it cannot be had.
    """
    while True:
        try:
            return (await asyncio.to_thread(source.manifest, reference))[1]
        except BeingBuiltError as error:
            if target.unwanted:
                raise
            target.progress(str(error))
        with suppress(TimeoutError):
            async with asyncio.timeout(BUILT_ASKED_EVERY_S):
                await target.until_unwanted()


@asynccontextmanager
async def alone(run_dir: Path) -> AsyncIterator[None]:
    """Wait until nobody else of this node stages, nor a process of before that is ending."""
    with (run_dir / "images.lock").open("wb") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(ALONE_ASKED_EVERY_S)
        yield


async def _mount(
    one: System, reference: str, source: ArtefactSource, manifest: ImageManifest
) -> None:
    """Have the artefact here and mounted, and forget what nobody needs any more."""
    kept = _kept(one)
    root = one.home.root(manifest.digest)
    if not root.mounted:
        artefact = await _artefact(one, root, source, manifest)
        with one.refusing(reference):
            await root.mount(artefact, one.target.settings.scratch_mb)
    await one.home.drop_all(spare=(*kept, manifest.digest))
    with one.refusing(reference):
        try:
            check_command(manifest, root.path)
        except Refused:
            if manifest.digest not in kept:
                await one.home.drop(root)
            raise
    before = next((said for place, said in one.home.staged() if place == root), None)
    references = (reference,) if before is None else (*before.references, reference)
    one.home.note_staged(root, Staged(manifest, tuple(dict.fromkeys(references))))
    forget_artefacts(one.target.run_dir)


async def _artefact(
    one: System, root: Root, source: ArtefactSource, manifest: ImageManifest
) -> Path:
    """The artefact: fetched, or where the declared command has it; verified in either case.

    Raises:
        HapteraError: it is not there, or is another one; nothing is attached then.
    """
    settings = one.target.settings
    if settings.attach is None:
        return await asyncio.to_thread(source.artefact, manifest)
    digest = manifest.digest.removeprefix(DIGEST)
    try:
        place = await root.attach(settings.attach, settings.detach, digest)
        await asyncio.to_thread(_check_artefact, place, manifest)
    except (HapteraError, OSError):
        await root.unmount()
        raise
    return place


def _check_artefact(place: Path, manifest: ImageManifest) -> None:
    if digest_of(place, manifest.size_bytes) != manifest.digest:
        raise HapteraError(
            f"what was attached is not {manifest.digest}, of {manifest.name}: not mounted",
            where=str(place),
            do="put the artefact there that the parent has",
        )


def _kept(one: System) -> tuple[str, ...]:
    """The images whose roots are needed: of what runs, and of what is desired and ready."""
    started = one.home.started()
    wanted = {one.target.values.get("image"), one.target.values.get("spare")}
    ready = [said.manifest.digest for _, said in one.home.staged() if wanted & {*said.references}]
    return tuple(ready if started is None else [started.image, *ready])


def check_fits(manifest: ImageManifest) -> None:
    """See that an image is for machines like this one.

    Raises:
        Refused: it is not.
    """
    here = _ARCHITECTURES.get(platform.machine(), platform.machine())
    if manifest.architecture != here:
        raise Refused(f"image {manifest.name} is for {manifest.architecture}, this node is {here}")


def images_of_jobs(run_dir: Path) -> SystemHome:
    """The folder where the images of jobs are mounted."""
    return SystemHome(run_dir.absolute() / IMAGES_OF_JOBS)


def forget_artefacts(run_dir: Path) -> None:
    """Keep only the artefacts that some system has, or some job, and what numbers were seen."""
    homes = [home_of(run_dir, folder.name) for folder in (run_dir / "systems").glob("*")]
    # By what is noted: the mounts of others may not be seen from here.
    noted = (one for home in (*homes, images_of_jobs(run_dir)) for one in home.noted())
    names = {one.manifest.digest.removeprefix(DIGEST) for one in noted} | {SEEN}
    for file in (run_dir / "images").glob("*"):
        if file.name not in names:
            file.unlink(missing_ok=True)
