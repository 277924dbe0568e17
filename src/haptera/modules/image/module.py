"""Images: build what is desired and is not there, remove what is not to be there."""

import asyncio
import shutil
from dataclasses import dataclass
from typing import Final

import msgspec

from haptera.kinds import image
from haptera.kinds.image import State
from haptera.modules.image.build import Build
from haptera.modules.image.store import MB, ImageStore, store_of
from haptera.sdk import (
    ANY,
    PARENT,
    Applied,
    HapteraError,
    Module,
    Policy,
    Privilege,
    Refused,
    Target,
)

# The key and certificate that manifests are signed with; the parent makes them at each start.
SIGNER: Final = "signer.pem"
BUILT_WITHIN_S: Final = 1800
# A recipe that fails does so again, until somebody mends it, or what it fetches is there again.
BUILDING: Final = Policy(3, backoff_ms=10_000, backoff_ms_max=60_000, cool_down_ms=1_800_000)


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """How much all artefacts may take together, in MB; None: as much as the disk has."""

    quota_mb: int | None = None


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


def connect(target: Target) -> Image:
    return Image(target, store_of(target.run_dir))


# buildah mounts file systems to carry out a recipe.
module = Module(
    "image",
    connect=connect,
    context=PARENT,
    settings=ImageSettings,
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
    return one.target.digest if manifest.recipe == one.made_of else manifest.digest[:16]


@module.step(
    state.goes(State.ABSENT, State.BUILT),
    applied.goes(ANY, Applied.CURRENT, expected=True),
    within_s=BUILT_WITHIN_S,
    policy=BUILDING,
)
async def build(one: Image) -> None:
    await _build(one)


@module.step(
    applied.goes(Applied.STALE, Applied.CURRENT),
    within_s=BUILT_WITHIN_S,
    requires={image.state: State.BUILT},
    policy=BUILDING,
)
async def rebuild(one: Image) -> None:
    """Nodes go on to find what the name stood for, until all of the new one is there."""
    await _build(one)


@state.step(State.BUILT, State.ABSENT, within_s=10)
async def remove(one: Image) -> None:
    one.store.remove(one.name)


async def _build(one: Image) -> None:
    values = one.target.values
    is_recipe = bool(values.get(image.recipe.name))
    if not one.made_of:
        raise Refused("no recipe is desired: give a folder with a Dockerfile, or a source")
    if is_recipe and values.get(image.source.name):
        raise Refused("a recipe and a source are desired: unset one of them")
    one.store.make()
    one.store.check_room(0, one.quota_bytes)
    work = one.store.work / one.name
    making = Build(one.name, one.made_of, is_recipe, work, one.store.log(one.name))
    try:
        artefact, manifest, inventory = await making.run()
        if not one.store.has(manifest):
            one.store.check_room(manifest.size_bytes, one.quota_bytes)
        signer = (one.store.path / SIGNER).read_bytes()
        files = msgspec.json.encode(inventory)
        await asyncio.to_thread(one.store.keep, artefact, manifest, signer, files)
    except OSError as error:
        raise Refused(f"{work}: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise Refused(f"buildah returned unexpected data about the image: {error}") from error
    finally:
        # Tens of thousands of files: the disk may take seconds, in which looks are to be answered.
        await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)
