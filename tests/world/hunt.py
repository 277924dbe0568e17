"""Runs histories by the thousand, each seed another storm.

python -m tests.world.hunt 0-5000       these seeds
python -m tests.world.hunt --hours 500  seeds from 0 on, until so many hours were simulated
"""

import itertools
import math
import sys
import time
from collections import Counter
from collections.abc import Iterable

from haptera.core.state.limits import S
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


def main(seeds: Iterable[int], hours_max: float = math.inf) -> int:
    """Hunt, tell what was found, and what happened how often; the number of broken seeds."""
    began, said, broken, hours, count = time.monotonic(), time.monotonic(), 0, 0.0, 0
    happened: Counter[str] = Counter()
    for seed in seeds:
        if hours >= hours_max:
            break
        count += 1
        try:
            clock = weather(seed).world.clock
        except Exception as error:  # noqa: BLE001 - whatever it is, the hunt goes on
            broken += 1
            _say(f"seed {seed}: {type(error).__name__}: {error}")
            _say(f"replay: python -m tests.world.hunt {seed}-{seed + 1}")
        else:
            happened += clock.happened
            hours += clock.now / (3_600 * S)
        if time.monotonic() - said > SAY_EVERY_S:
            said = time.monotonic()
            _tell(count, hours, broken, said - began)
    _tell(count, hours, broken, time.monotonic() - began)
    for fault, times in sorted(happened.items()):
        _say(f"{times:9} {fault}")
    return broken


def _tell(count: int, hours: float, broken: int, took_s: float) -> None:
    rate = hours / took_s * 60
    _say(f"{count} seeds, {hours:.1f} simulated hours, {rate:.1f} a minute, {broken} broken")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--hours", hours]:
            sys.exit(min(1, main(itertools.count(), float(hours))))
        case [seeds]:
            sys.exit(min(1, main(seeds_of(seeds))))
        case _:
            sys.exit(__doc__)
