"""Spins fans, each of which is a file with its state in it."""

from pathlib import Path

from fans.kind import Spin, spin
from haptera.sdk import PARENT, Module, Target


class Fan:
    """One fan: the file NODE.NAME in the module's folder."""

    def __init__(self, target: Target) -> None:
        self._file = target.run_dir / f"{target.node}.{target.name}"

    def read(self) -> Spin:
        return Spin(self._file.read_text()) if self._file.exists() else Spin.STILL

    def write(self, spin: Spin) -> None:
        part = Path(f"{self._file}.part")
        part.write_text(spin)
        part.replace(self._file)


module = Module("fans", connect=Fan, context=PARENT)
spins = module.serves(spin)


@spins.look(every_s=5, outcomes=(Spin.STILL, Spin.SPINNING))
async def look(fan: Fan) -> Spin:
    return fan.read()


@spins.step(Spin.STILL, Spin.SPINNING, within_s=5, late_s=1)
async def start(fan: Fan) -> None:
    fan.write(Spin.SPINNING)


@spins.step(Spin.SPINNING, Spin.STILL, within_s=5, late_s=1)
async def stop(fan: Fan) -> None:
    fan.write(Spin.STILL)
