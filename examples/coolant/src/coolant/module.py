"""Runs the pumps of coolant loops, each of which is a file with its settings in it."""

from pathlib import Path

from coolant.kind import State, address, applied, litres_per_minute, state
from haptera.sdk import ANY, PARENT, Applied, Module, Target


class Pump:
    """The pump of one loop: while it runs, a file that is named by its address."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._file = target.run_dir / target.attributes[address.name]

    def runs(self) -> bool:
        return self._file.exists()

    def digest(self) -> str:
        """What stands for the settings that it was started with."""
        return self._file.read_text().split()[0]

    def start(self) -> None:
        litres = self._target.values[litres_per_minute.name]
        part = Path(f"{self._file}.part")
        part.write_text(f"{self._target.digest} {litres}\n")
        part.replace(self._file)

    def stop(self) -> None:
        self._file.unlink(missing_ok=True)


module = Module("coolant", connect=Pump, context=PARENT)
runs, settings = module.serves(state), module.serves(applied)


@runs.look(every_s=5, outcomes=(State.STOPPED, State.RUNNING))
async def look(pump: Pump) -> State:
    return State.RUNNING if pump.runs() else State.STOPPED


@settings.look(
    every_s=5, outcomes=(Applied.STALE, Applied.CURRENT), requires={state: State.RUNNING}
)
async def look_settings(pump: Pump) -> str:
    return pump.digest()


@module.step(
    runs.goes((State.STOPPED, State.RUNNING), State.RUNNING),
    settings.goes(ANY, Applied.CURRENT, expected=True),
    within_s=5,
    late_s=1,
)
async def start(pump: Pump) -> None:
    pump.start()


@runs.step(State.RUNNING, State.STOPPED, within_s=5, late_s=1)
async def stop(pump: Pump) -> None:
    pump.stop()
