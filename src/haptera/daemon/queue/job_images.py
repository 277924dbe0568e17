"""The images in which jobs of this node run: each is mounted once, for all of its jobs.

Nothing of a job is mounted here but that: what a job adds is seen by it alone, and gone with it.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from haptera.images.fetch import ArtefactSource, LostError
from haptera.images.manifest import ImageManifest
from haptera.images.parent import Parent
from haptera.modules.system.container import RUNTIME
from haptera.modules.system.home import Staged
from haptera.modules.system.mounts import Root
from haptera.modules.system.staging import alone, check_fits, forget_artefacts, images_of_jobs
from haptera.queue.work import IMAGES_TOLD_MAX
from haptera.sdk import uplink

# So many that no job uses are kept, for the next one; those whose last use is longest ago
# are dropped first.
UNUSED_KEPT_MAX: Final = 4
# A parent that is away, or that builds the image still, is asked again.
ASK_AGAIN_S: Final = 5.0


class JobImages:
    """The images that are mounted for jobs, below the agent's folder."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir.absolute()
        self._home = images_of_jobs(self._run_dir)
        # Digests in the order of their last use; a dict keeps its order.
        self._last_used: dict[str, None] = {}

    @property
    def known(self) -> tuple[str, ...] | None:
        """By names and digests, what is here; None: no job can run in an image here."""
        if os.geteuid() != 0 or shutil.which(RUNTIME) is None:
            return None
        here = [one for _, one in self._home.staged()]
        names = {name for one in here for name in (*one.references, one.manifest.digest)}
        return tuple(sorted(names))[:IMAGES_TOLD_MAX]

    async def stage(
        self, reference: str, is_wanted: Callable[[], bool]
    ) -> tuple[Root, ImageManifest]:
        """Have an image mounted, by name or digest, as the parent has it now.

        Raises:
            HapteraError: the parent has none, or it is none that may be run here.
            OSError: the disk does not take it.
        """
        source = ArtefactSource(Parent(uplink(self._run_dir)), self._run_dir / "images")
        while True:
            try:
                _, manifest = await asyncio.to_thread(source.manifest, reference)
                check_fits(manifest)
                # Not to be cancelled: a thread that fetches goes on, and is to be alone.
                return await asyncio.shield(self._mount(source, manifest, reference)), manifest
            except LostError:
                if not is_wanted():
                    raise
            await asyncio.sleep(ASK_AGAIN_S)

    async def _mount(self, source: ArtefactSource, manifest: ImageManifest, reference: str) -> Root:
        async with alone(self._run_dir):
            root = self._home.root(manifest.digest)
            if not root.mounted:
                await root.mount_alone(await asyncio.to_thread(source.artefact, manifest))
            before = (one.references for place, one in self._home.staged() if place == root)
            names = dict.fromkeys((*next(before, ()), reference))
            self._home.note_staged(root, Staged(manifest, tuple(names)))
            self._last_used.pop(manifest.digest, None)
            self._last_used[manifest.digest] = None
            return root

    async def drop_unused(self, used: Callable[[], Collection[str]]) -> None:
        """Keep the images of these digests, and a few others.

        Raises:
            HapteraError: one cannot be unmounted.
        """
        async with alone(self._run_dir):
            needed = used()
            unused = [one for one in self._home.staged() if one[1].manifest.digest not in needed]
            last_used = [*self._last_used]
            unused.sort(key=lambda one: _place(last_used, one[1].manifest.digest), reverse=True)
            for root, said in unused[UNUSED_KEPT_MAX:]:
                await self._home.drop(root)
                self._last_used.pop(said.manifest.digest, None)
            forget_artefacts(self._run_dir)


def _place(used: list[str], digest: str) -> int:
    """Its place in the order of use; what an earlier process has used comes first."""
    return used.index(digest) if digest in used else -1
