"""Runs histories by the thousand: `python -m tests.world.hunt 0-5000`, each seed another storm."""

import sys
import time
from collections import Counter
from collections.abc import Iterable

from haptera.core.views.query import view
from tests.world.history import web
from tests.world.storm import Storm, check

STEPS = 25
SAY_EVERY_S = 60


def weather(seed: int) -> Storm:
    """One storm, what came of it judged, and all as desired after it."""
    return through(Storm(seed))


def through(storm: Storm) -> Storm:
    """The storm from its first gust on."""
    storm.unfold(STEPS)
    settled = storm.calm_down()
    check(storm)
    engine = storm.world.parent.engine
    assert engine is not None
    now = storm.world.clock.now
    assert settled, [view(row, now) for row in engine.table]
    for name, machine in storm.world.machines.items():
        row = engine.table.get(web(name))
        assert row is not None
        assert (machine.power, machine.services["web"]) == ("on", row.digest("applied"))
    return storm


def broken_promise(seed: int) -> str | None:
    """What was found wrong in this history; an engine that gives up is wrong too."""
    try:
        weather(seed)
    except Exception as error:  # noqa: BLE001 - a planted bug may raise anything
        return f"{type(error).__name__}: {error}"
    return None


def first_broken(seeds: Iterable[int]) -> tuple[int, str] | None:
    """The first seed in which a promise was broken."""
    for seed in seeds:
        if (text := broken_promise(seed)) is not None:
            return seed, text
    return None


def seeds_of(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last))


def main(seeds: range) -> int:
    """Hunt, tell what was found, and what happened how often; the number of broken seeds."""
    began, said, broken = time.monotonic(), time.monotonic(), 0
    happened: Counter[str] = Counter()
    for count, seed in enumerate(seeds, 1):
        try:
            happened += weather(seed).world.clock.happened
        except Exception as error:  # noqa: BLE001 - whatever it is, the hunt goes on
            broken += 1
            _say(f"seed {seed}: {type(error).__name__}: {error}")
        if time.monotonic() - said > SAY_EVERY_S or count == len(seeds):
            said = time.monotonic()
            _say(f"{count} seeds, {count / (said - began):.1f} a second, {broken} broken")
    for fault, times in sorted(happened.items()):
        _say(f"{times:9} {fault}")
    return broken


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(min(1, main(seeds_of(sys.argv[1]))))
