"""Runs histories by the thousand, each seed another one, on all processors.

python -m tests.world.hunt 0-5000       these seeds of storms, in which all goes wrong at once
python -m tests.world.hunt hours 7-8    these seeds of a tree on which a thing breaks every minute
python -m tests.world.hunt --hours 500  of the latter from 0 on, until so many hours were simulated
    --within 600                        or until so many seconds have passed
    --from 739000                       from this seed on
"""

import gc
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count, islice
from typing import NamedTuple

from haptera.core.state.limits import S
from haptera.core.views.query import view
from haptera.testing.machine import Trouble
from tests.core.scenario import row_of
from tests.world.history import web
from tests.world.hours import FAULTS, Hours
from tests.world.storm import Storm, check

STEPS = 25
SAY_EVERY_S = 60
# All that comes about in so many hours of a tree.
PROVING_H = 20
HAPPENS = {
    *(f"datagram {fate}" for fate in ("lost", "copied", "late")),
    *(f"machine {trouble}" for trouble in Trouble.__annotations__),
    *("process killed", "process paused", "module killed", "power lost", "services ended"),
    *("agent moved", "keys changed", "standby promoted", "lease lost", "link cut"),
    *("wish asked", "disk refuses"),
}
# One under way for each processor, and one that it finds when that has ended.
SEEDS_AT_ONCE = 2 * (os.cpu_count() or 1)


def weather(seed: int) -> Storm:
    """One storm, what came of it judged, and all as desired after it."""
    return through(Storm(seed))


def an_hour(seed: int) -> Storm:
    """About one hour of a tree, what came of it judged, and all as desired after it."""
    return through(Hours(seed), FAULTS)


def through(storm: Storm, steps: int = STEPS) -> Storm:
    """The storm from its first gust on."""
    storm.unfold(steps)
    settled = storm.calm_down()
    check(storm)
    engine = storm.world.parent.engine
    assert engine is not None
    now = storm.world.clock.now
    assert settled, [view(row, now) for row in engine.table]
    for name, machine in storm.world.machines.items():
        row = row_of(engine, web(name))
        assert (machine.power, machine.services["web"]) == ("on", row.digest("applied"))
    return storm


def broken_promise(seed: int) -> str | None:
    """What was found wrong in this history; an engine that gives up is wrong too."""
    return found(weather, seed).broken


def first_broken(seeds: Iterable[int]) -> tuple[int, str] | None:
    """The first seed in which a promise was broken."""
    for seed in seeds:
        if (text := broken_promise(seed)) is not None:
            return seed, text
    return None


class Found(NamedTuple):
    """What came of one seed: for how long it went, which faults came about, what was broken."""

    seed: int
    hours: float
    happened: Counter[str]
    broken: str | None


def found(history: Callable[[int], Storm], seed: int) -> Found:
    try:
        clock = history(seed).world.clock
    except Exception as error:  # noqa: BLE001 - a planted bug may raise anything
        return Found(seed, 0, Counter(), f"{type(error).__name__}: {error}")
    return Found(seed, clock.now / (3_600 * S), clock.happened, None)


def seeds_of(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last))


def main(
    word: str, seeds: Iterable[int], hours_max: float = math.inf, within_s: float = math.inf
) -> int:
    """Hunt, tell what was found, and what happened how often; how much was found wrong."""
    began, said, all_of_it = time.monotonic(), time.monotonic(), list[Found]()
    for one in hunted(HISTORIES[word], seeds):
        all_of_it.append(one)
        if one.broken is not None:
            _say(f"seed {one.seed}: {one.broken}")
            replay = f"{word} {one.seed}-{one.seed + 1}".strip()
            _say(f"replay: python -m tests.world.hunt {replay}")
        now = time.monotonic()
        if now - said > SAY_EVERY_S:
            said = now
            _tell(all_of_it, now - began)
        if _hours(all_of_it) >= hours_max or now - began >= within_s:
            break
    _tell(all_of_it, time.monotonic() - began)
    happened = sum((one.happened for one in all_of_it), Counter[str]())
    for fault, times in sorted(happened.items()):
        _say(f"{times:9} {fault}")
    never = _lacks(word, happened) if _hours(all_of_it) >= PROVING_H else []
    for fault in never:
        _say(f"never happened: {fault}")
    return sum(one.broken is not None for one in all_of_it) + len(never)


def hunted(history: Callable[[int], Storm], seeds: Iterable[int]) -> Iterator[Found]:
    """What came of each seed, as they end; no processor waits for another one's."""
    left = iter(seeds)
    with ProcessPoolExecutor(initializer=_collect_rarely) as pool:
        under_way = set[Future[Found]]()
        try:
            while True:
                for seed in islice(left, SEEDS_AT_ONCE - len(under_way)):
                    under_way.add(pool.submit(found, history, seed))
                if not under_way:
                    return
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in done)
        finally:
            pool.shutdown(cancel_futures=True)


def _collect_rarely() -> None:
    """A history keeps all that happened in it: there is little to find for a collector."""
    gc.set_threshold(100_000, 50, 50)


# By the word that the command line has for it.
HISTORIES = {"": weather, "hours": an_hour}


def _lacks(word: str, happened: Counter[str]) -> list[str]:
    """The faults that should have come about: one that never does proves nothing."""
    return sorted(HAPPENS - {*happened}) if word == "hours" else []


def _hours(all_of_it: Iterable[Found]) -> float:
    return sum(one.hours for one in all_of_it)


def _tell(all_of_it: list[Found], took_s: float) -> None:
    hours, broken = _hours(all_of_it), sum(one.broken is not None for one in all_of_it)
    rate = hours / took_s * 60
    _say(
        f"{len(all_of_it)} seeds, {hours:.1f} simulated hours, {rate:.1f} a minute, {broken} broken"
    )


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number > 0:
        sys.exit(f"{text!r} is not a number of hours or seconds above 0")
    return number


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--hours", hours]:
            sys.exit(min(1, main("hours", count(), _number(hours))))
        case ["--hours", hours, "--from", seed]:
            sys.exit(min(1, main("hours", count(int(seed)), _number(hours))))
        case ["--hours", hours, "--within", seconds]:
            sys.exit(min(1, main("hours", count(), _number(hours), _number(seconds))))
        case ["hours", seeds]:
            sys.exit(min(1, main("hours", seeds_of(seeds))))
        case [seeds]:
            sys.exit(min(1, main("", seeds_of(seeds))))
        case _:
            sys.exit(__doc__)
