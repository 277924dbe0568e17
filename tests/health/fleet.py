"""Synthetic fleets: readings of machines that will meet a limit, and of others that will not."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import exp, pi, sin
from random import Random
from typing import Final

from haptera.health.bundled import BY_NAME
from haptera.health.readings import Timed
from haptera.health.rule import HealthRule, Trend
from haptera.health.track import Track

MINUTE: Final = 60.0
LEAD_S: Final = 10 * MINUTE
LASTS_S: Final = 240 * MINUTE
# Where a series begins, in seconds since 1970.
BEGIN_S: Final = 1_800_000_000.0

# What a machine truly is at a time, in units of the way from its usual level (0) to the limit (1).
Course = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class SensorKind:
    """A rule's sensor: its usual level, its noise as a part of the way to the limit."""

    rule: str
    sensor: str
    level: tuple[float, float]
    noise: tuple[float, float]
    counts: bool = False


KINDS: Final = (
    SensorKind("inlet-trend", "temp.inlet", (18, 27), (0.01, 0.06)),
    SensorKind("cpu-trend", "temp.cpu[0]", (40, 70), (0.01, 0.06)),
    SensorKind("disk-trend", "disk.used_percent[/]", (20, 70), (0.0, 0.01)),
    SensorKind("memory-trend", "ecc.corrected[mc0/dimm1]", (0, 0), (0.0, 0.0), counts=True),
)


@dataclass(frozen=True, slots=True)
class Recording:
    """The readings of one sensor, and when it truly meets the limit; None: it does not."""

    shape: str
    rule: HealthRule
    sensor: str
    points: tuple[Timed, ...]
    meets_at: float | None


def fleet(seed: int, size: int = 8) -> Iterator[Recording]:
    """So many sensors: half of them sound."""
    rng = Random(seed)
    for number in range(size):
        kind = KINDS[number % len(KINDS)] if number < len(KINDS) else rng.choice(KINDS)
        shapes = FAILING if rng.random() < 0.5 else SOUND
        shape = rng.choice([one for one in shapes if not kind.counts or one not in NO_COUNTER])
        yield _recorded(kind, shape, shapes[shape](rng), rng)


def episodes(recording: Recording) -> list[tuple[float, float]]:
    """From when until when the rule predicts, as its readings come in."""
    found: list[tuple[float, float]] = []
    track = Track(recording.rule, recording.sensor)
    for one in recording.points:
        if not track.add(one, one.at):
            continue
        if track.symptom is not None:
            found.append((one.at, BEGIN_S + LASTS_S))
        else:
            found[-1] = (found[-1][0], one.at)
    return found


@dataclass(slots=True)
class Score:
    """How many predictions came true, how many did not, and what was not predicted in time."""

    right: int = 0
    wrong: int = 0
    met: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        return 1 - self.missed / max(1, self.met)

    def add(self, recording: Recording, found: list[tuple[float, float]]) -> tuple[int, bool]:
        """Count what was predicted of a recording; how much was wrong, and whether it was missed.

        A prediction is right if the limit is met within twice its time; a limit that is met was
        predicted if ten minutes before it a prediction stood.
        """
        test = recording.rule.pipeline.test
        assert isinstance(test, Trend)
        met = recording.meets_at
        ahead = [one for one in found if met is None or one[0] < met]
        right = [one for one in ahead if met is not None and met - one[0] <= 2 * test.within_s]
        self.right += len(right)
        self.wrong += len(ahead) - len(right)
        missed = met is not None and not any(begin <= met - LEAD_S < end for begin, end in ahead)
        self.met += met is not None
        self.missed += missed
        return len(ahead) - len(right), missed


def _recorded(kind: SensorKind, shape: str, course: Course, rng: Random) -> Recording:
    rule = BY_NAME[kind.rule]
    test = rule.pipeline.test
    assert isinstance(test, Trend)
    usual = rng.uniform(*kind.level)
    way = test.limit - usual
    noise = rng.uniform(*kind.noise) * way
    interval = rng.choice((10.0, 30.0, 60.0))
    gaps = [rng.uniform(0, LASTS_S) for _ in range(rng.choice((0, 0, 1, 2)))]
    points: list[Timed] = []
    at = rng.uniform(0, interval)
    counted, reset_at = rng.randrange(50), rng.uniform(0, LASTS_S) if rng.random() < 0.3 else None
    fraction, before = 0.0, course(0.0)
    while at < LASTS_S:
        if kind.counts:
            # What decays (half in a day) is made up for, so that the level follows the course.
            rise = max(0.0, (course(at) - before) * way)
            fraction += rise
            before = course(at)
            counted, fraction = counted + int(fraction), fraction - int(fraction)
            if reset_at is not None and at > reset_at:
                counted, reset_at = 0, None
            value = float(counted)
        else:
            value = usual + way * course(at) + rng.gauss(0, noise)
            if rng.random() < 0.002:
                value = rng.choice((0.0, usual + 3 * way, 255.0))
            value = round(value, rng.choice((0, 1)) if noise else 2)
        if not any(gap < at < gap + 240 for gap in gaps):
            points.append(Timed(BEGIN_S + at, value))
        at += interval * rng.uniform(0.9, 1.1)
    return Recording(shape, rule, kind.sensor, tuple(points), _meets(course))


def _meets(course: Course) -> float | None:
    at = 0.0
    while at < LASTS_S:
        if course(at) >= 1.0:
            return BEGIN_S + at
        at += 5.0
    return None


def _ramp(rng: Random) -> Course:
    begin, lasts = rng.uniform(30, 60) * MINUTE, rng.uniform(40, 150) * MINUTE
    return lambda at: max(0.0, (at - begin) / lasts)


def _faster(rng: Random) -> Course:
    begin, lasts = rng.uniform(30, 60) * MINUTE, rng.uniform(60, 150) * MINUTE
    power = rng.uniform(1.2, 2.0)
    return lambda at: max(0.0, (at - begin) / lasts) ** power


def _step_then_ramp(rng: Random) -> Course:
    step, begin = rng.uniform(0.1, 0.3), rng.uniform(60, 80) * MINUTE
    lasts = rng.uniform(50, 120) * MINUTE
    return lambda at: (step if at > 40 * MINUTE else 0) + max(0.0, (at - begin) / lasts)


def _flat(rng: Random) -> Course:
    return lambda at: 0.0


def _step(rng: Random) -> Course:
    steps = [(rng.uniform(0, LASTS_S), rng.uniform(-0.2, 0.5)) for _ in range(3)]
    return lambda at: min(0.85, sum(high for when, high in steps if at > when))


def _warm_up(rng: Random) -> Course:
    begin, tau, high = (
        rng.uniform(30, 120) * MINUTE,
        rng.uniform(2, 15) * MINUTE,
        rng.uniform(0.2, 0.7),
    )
    return lambda at: 0.0 if at < begin else high * (1 - exp((begin - at) / tau))


def _daily(rng: Random) -> Course:
    high, phase = rng.uniform(0.1, 0.4), rng.uniform(0, 2 * pi)
    return lambda at: high * (1 + sin(2 * pi * at / 86_400 + phase)) / 2


def _load(rng: Random) -> Course:
    """Work that comes and goes, a quarter of an hour at a time."""
    levels = [rng.uniform(0, 0.6) for _ in range(20)]
    return lambda at: levels[int(at // (15 * MINUTE))]


def _slow(rng: Random) -> Course:
    lasts = rng.uniform(600, 3_000) * MINUTE
    return lambda at: at / lasts


def _stuck(rng: Random) -> Course:
    begin, lasts, stop = 30 * MINUTE, rng.uniform(200, 400) * MINUTE, rng.uniform(60, 120) * MINUTE
    return lambda at: max(0.0, (min(at, stop) - begin) / lasts)


def _cleaned(rng: Random) -> Course:
    """What fills, and is emptied each hour or so, well before its limit."""
    period, high = rng.uniform(40, 90) * MINUTE, rng.uniform(0.1, 0.5)
    return lambda at: high * (at % period) / period


FAILING: Final = {"ramp": _ramp, "faster": _faster, "step, then ramp": _step_then_ramp}
SOUND: Final = {
    "flat": _flat,
    "step": _step,
    "warm-up": _warm_up,
    "daily": _daily,
    "load": _load,
    "slow": _slow,
    "stuck": _stuck,
    "cleaned": _cleaned,
}
# A counter never falls.
NO_COUNTER: Final = {"step", "load", "daily", "cleaned"}
