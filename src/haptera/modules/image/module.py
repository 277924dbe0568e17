"""Images: build what is desired and is not there, remove what is not to be there.

A parent below another one builds nothing: it takes over what that one has built.
"""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec

from haptera.images.fetch import ArtefactSource, LostError, NotThereError
from haptera.images.manifest import ImageManifest, sign
from haptera.images.parent import Parent
from haptera.kinds import image
from haptera.kinds.image import State
from haptera.modules.image.build import Build, ImageFormat
from haptera.modules.image.room import StoreRoom
from haptera.modules.image.store import MB, ImageStore, store_of
from haptera.sdk import (
    ANY,
    PARENT,
    Applied,
    ForeignError,
    HapteraError,
    Module,
    Policy,
    Privilege,
    Refused,
    Setup,
    Target,
)
from haptera.sdk.uplink import UPLINK, uplink

# The key and certificate that manifests are signed with; the parent makes them at each start.
SIGNER: Final = "signer.pem"
# Its turn among other builds included.
BUILT_WITHIN_S: Final = 3600
# What is seen of a build is a name in the store, which this process alone writes: where it is
# killed, nothing more comes, for its tools are killed with it.
BUILT_LATE_S: Final = 1
# How often a parent above is asked for what it has not built yet.
ASKED_EVERY_S: Final = 5.0
# A recipe that fails does so again, until somebody mends it, or what it fetches is there again.
BUILDING: Final = Policy(3, backoff_ms=10_000, backoff_ms_max=60_000, cool_down_ms=1_800_000)


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """How much all artefacts may take together, in MB; None: as much as the disk has.

    They are sent to so many nodes `at_once`, with so many MB a second together. What is built from
    now on is of this `format`, but for roots that are imported as they are; at one time, so many
    are built.
    """

    quota_mb: int | None = None
    format: ImageFormat = ImageFormat.SQUASHFS
    at_once: Annotated[int, msgspec.Meta(ge=1)] = 16
    rate_mb_s: Annotated[float, msgspec.Meta(gt=0)] | None = None
    builds_at_once: Annotated[int, msgspec.Meta(ge=1)] = 2


@dataclass(frozen=True, slots=True)
class Image:
    """One image: what it should be, and the store that it is in."""

    target: Target
    store: ImageStore

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def quota_bytes(self) -> int | None:
        settings: ImageSettings = self.target.settings
        return None if settings.quota_mb is None else settings.quota_mb * MB

    @property
    def made_of(self) -> str:
        """Its recipe or its source, as it is desired."""
        values = self.target.values
        return str(values.get(image.recipe.name) or values.get(image.source.name) or "")

    @property
    def above(self) -> ArtefactSource | None:
        """Where it is taken over from, if this parent is below another one."""
        said = uplink(self.store.path) if (self.store.path / UPLINK).exists() else None
        return None if said is None else ArtefactSource(Parent(said), self.store.coming(self.name))


def connect(target: Target) -> Image:
    return Image(target, store_of(target.run_dir))


@contextlib.asynccontextmanager
async def builders(setup: Setup) -> AsyncIterator[asyncio.Semaphore]:
    """Who may build: each takes a place, for the disk and the processors are everybody's."""
    settings: ImageSettings = setup.settings
    yield asyncio.Semaphore(settings.builds_at_once)


# buildah mounts file systems to carry out a recipe.
module = Module(
    "image",
    connect=connect,
    context=PARENT,
    settings=ImageSettings,
    lifespan=builders,
    needs=(Privilege.NAMESPACES,),
)
state = module.serves(image.state)
applied = module.serves(image.applied)


@state.look(every_s=10, outcomes=(State.ABSENT, State.BUILT))
async def look_state(one: Image) -> State:
    manifest = one.store.manifest(one.name)
    if manifest is None or not one.store.has(manifest):
        return State.ABSENT
    megabytes = manifest.size_bytes / MB
    one.target.note(f"{manifest.digest}, {megabytes:.1f} MB")
    return State.BUILT


@applied.look(
    every_s=30,
    outcomes=(Applied.STALE, Applied.CURRENT),
    requires={image.state: State.BUILT},
)
async def look_applied(one: Image) -> str:
    manifest = one.store.manifest(one.name)
    if manifest is None:
        raise HapteraError("it is not there")
    # Of all that is desired of an image, what it is made of alone is data.
    current = manifest.recipe == one.made_of
    if current and one.above is not None:
        with contextlib.suppress(HapteraError):
            current = (await asyncio.to_thread(one.above.manifest, one.name))[1] == manifest
    return one.target.digest if current else manifest.digest[:16]


@module.step(
    state.goes(State.ABSENT, State.BUILT),
    applied.goes(ANY, Applied.CURRENT, expected=True),
    within_s=BUILT_WITHIN_S,
    policy=BUILDING,
    late_s=BUILT_LATE_S,
    stoppable=True,
    ends_with_call=True,
)
async def build(one: Image) -> None:
    await _build(one)


@module.step(
    applied.goes(Applied.STALE, Applied.CURRENT),
    within_s=BUILT_WITHIN_S,
    requires={image.state: State.BUILT},
    policy=BUILDING,
    late_s=BUILT_LATE_S,
    stoppable=True,
    ends_with_call=True,
)
async def rebuild(one: Image) -> None:
    """Nodes go on to find what the name stood for, until all of the new one is there."""
    await _build(one)


@state.step(State.BUILT, State.ABSENT, within_s=10)
async def remove(one: Image) -> None:
    one.store.remove(one.name)
    shutil.rmtree(one.store.coming(one.name), ignore_errors=True)


async def _build(one: Image) -> None:
    values = one.target.values
    is_recipe = bool(values.get(image.recipe.name))
    if not one.made_of:
        raise Refused("no recipe is desired: give a folder with a Dockerfile, or a source")
    if is_recipe and values.get(image.source.name):
        raise Refused("a recipe and a source are desired: unset one of them")
    one.store.make()
    one.store.check_room(0, one.quota_bytes)
    StoreRoom(one.store.path, one.store.left_bytes(one.name, one.quota_bytes)).check_disk()
    work = one.store.work / one.name
    try:
        if one.above is not None:
            await _take_over(one, one.above)
        else:
            form = one.target.settings.format
            log = one.store.log(one.name)
            async with _place(one):
                # Others have been built while this one waited.
                room = StoreRoom(one.store.path, one.store.left_bytes(one.name, one.quota_bytes))
                await _make(one, Build(one.name, one.made_of, is_recipe, work, log, room, form))
    except OSError as error:
        raise Refused(f"{work}: {error.strerror or error}") from error
    except ForeignError as error:
        raise Refused(str(error)) from error
    finally:
        # Tens of thousands of files: the disk may take seconds, in which looks are to be answered.
        await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)


@contextlib.asynccontextmanager
async def _place(one: Image) -> AsyncIterator[None]:
    """A place among those that build."""
    places: asyncio.Semaphore = one.target.session
    if places.locked():
        one.target.progress("waits until other images are built")
    async with places:
        one.target.progress("builds")
        yield


async def _make(one: Image, making: Build) -> None:
    artefact, manifest, inventory = await making.run()
    _check_room(one, manifest)
    # The artefact was made just now.
    number = one.store.number(one.name, artefact.stat().st_mtime)
    manifest = msgspec.structs.replace(manifest, number=number)
    signed = sign(manifest, (one.store.path / SIGNER).read_bytes())
    await asyncio.to_thread(one.store.keep, artefact, signed, msgspec.json.encode(inventory))


async def _take_over(one: Image, source: ArtefactSource) -> None:
    """Have what the parent above has, as soon as it has it; verified, as nodes do."""
    while not one.target.unwanted:
        try:
            signed, manifest = await asyncio.to_thread(source.manifest, one.name)
            if manifest.recipe == one.made_of:
                _check_room(one, manifest)
                StoreRoom(one.store.path).check_disk(manifest.size_bytes)
                artefact = await asyncio.to_thread(source.artefact, manifest)
                await asyncio.to_thread(one.store.keep, artefact, signed)
                return
            one.target.progress(f"{source.parent.uplink} has not built it yet")
        except (NotThereError, LostError) as error:
            one.target.progress(str(error))
        await asyncio.sleep(ASKED_EVERY_S)


def _check_room(one: Image, manifest: ImageManifest) -> None:
    if not one.store.has(manifest):
        one.store.check_room(manifest.size_bytes, one.quota_bytes)
