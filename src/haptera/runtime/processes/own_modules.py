"""Modules of one's own: where a site says that they are, and what they say that they can do."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from haptera.model.effects import Start
from haptera.model.errors import Code, HapteraError
from haptera.model.events import Event, Exited, Ready
from haptera.model.parts import Manifest
from haptera.runtime.processes.confinement.confinement import Confine, unconfined
from haptera.runtime.processes.forking import LoopZygote
from haptera.runtime.processes.places import ModulePlace
from haptera.runtime.processes.process import ModuleProcesses

# How long a module may take until it says what it can do, when a parent starts.
DESCRIBED_WITHIN_S: Final = 20.0
# What all of them may declare: each node receives it when it enrols, in one frame.
DECLARED_BYTES_MAX: Final = 40_960

_log = logging.getLogger(__name__)


class OwnModule(msgspec.Struct, frozen=True):
    """One module of one's own, and what it declares."""

    place: ModulePlace
    manifest: Manifest


async def describe(
    zygote: LoopZygote,
    places: Sequence[ModulePlace],
    known: Iterable[OwnModule],
    directory: Path,
    confine: Confine = unconfined,
) -> tuple[OwnModule, ...]:
    """The declarations of each module, asked of a process of it that is ended again.

    One that cannot be run is taken for what it was when it last could: `known`.

    Raises:
        HapteraError: one never could be run, or is not what the site says, or declares too much.
    """
    if not places:
        return ()
    telling = _Telling(zygote, places, directory, confine)
    try:
        answers = await asyncio.gather(*(telling.ask(one) for one in places))
    finally:
        telling.close()
    before = {one.place: one for one in known}
    found: list[OwnModule] = []
    for place, answer in zip(places, answers, strict=True):
        if isinstance(answer, Manifest):
            _check(place, answer)
            found.append(OwnModule(place, answer))
        elif place in before:
            _log.warning("module %s cannot be run: %s", place.name, answer)
            found.append(before[place])
        else:
            raise HapteraError(
                f"module {place.name} cannot be run: {answer}",
                where=str(directory / "log" / f"{place.name}.log"),
                do="fix it, then start again",
                code=Code.INVALID_MODULE,
            )
    if (size := len(msgspec.json.encode(found))) > DECLARED_BYTES_MAX:
        raise HapteraError(
            f"your own modules declare {size} bytes, {DECLARED_BYTES_MAX} at most",
            do="leave parts out, or give them shorter names",
            code=Code.LIMIT,
        )
    return tuple(found)


class _Telling:
    """Processes that are asked only what they are."""

    def __init__(
        self,
        zygote: LoopZygote,
        places: Sequence[ModulePlace],
        directory: Path,
        confine: Confine,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._said: dict[str, asyncio.Future[Manifest | str]] = {
            one.name: loop.create_future() for one in places
        }
        self._processes = ModuleProcesses(
            zygote,
            self._hear,
            places={one.name: one for one in places},
            run_dir=directory,
            log_dir=directory / "log",
            confine=confine,
        )

    async def ask(self, place: ModulePlace) -> Manifest | str:
        """What it declares, or why it does not say."""
        self._processes.describe(Start(place.name, 1, ""))
        try:
            async with asyncio.timeout(DESCRIBED_WITHIN_S):
                return await self._said[place.name]
        except TimeoutError:
            return f"it did not become ready within {DESCRIBED_WITHIN_S:.0f} s"

    def close(self) -> None:
        self._processes.close()

    def _hear(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Ready(module, manifest=None):
                    self._answer(module, "it did not send its manifest")
                case Ready(module, manifest=manifest) if manifest is not None:
                    self._answer(module, manifest)
                case Exited(module, text):
                    self._answer(module, text)
                case _:
                    pass

    def _answer(self, module: str, answer: Manifest | str) -> None:
        if not self._said[module].done():
            self._said[module].set_result(answer)


def _check(place: ModulePlace, manifest: Manifest) -> None:
    if manifest.context is not place.context:
        raise HapteraError(
            f"module {place.name} runs at context {manifest.context}, and the site says"
            f" {place.context}",
            do=f"write `context: {manifest.context}`",
            code=Code.INVALID_MODULE,
        )
