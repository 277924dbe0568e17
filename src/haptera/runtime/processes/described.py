"""The declarations of one's own modules, for a program that runs none of them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from haptera.model.errors import HapteraError
from haptera.model.parts import Manifest
from haptera.runtime.processes.forking import LoopZygote, exec_zygote
from haptera.runtime.processes.own_modules import describe
from haptera.runtime.processes.places import ModulePlace


def described(places: Sequence[ModulePlace]) -> tuple[Manifest, ...]:
    """The declarations of each module, asked of a process of it that is ended again.

    Raises:
        HapteraError: one cannot be run, or is not what the site says.
    """
    if not places:
        return ()
    with TemporaryDirectory(prefix="haptera-") as folder:
        try:
            return asyncio.run(_asked(places, Path(folder)))
        except HapteraError as error:
            # Where its log was is no place any more.
            raise HapteraError(error.what, do=error.do) from None


async def _asked(places: Sequence[ModulePlace], folder: Path) -> tuple[Manifest, ...]:
    zygote = LoopZygote(lambda: exec_zygote(()))
    try:
        return tuple(one.manifest for one in await describe(zygote, places, (), folder))
    finally:
        zygote.close()
