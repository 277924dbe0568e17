"""The evaluation of health rules: of one sensor, of several symptoms, and a machine's grade."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

from haptera.health.filters import filtered
from haptera.health.readings import GAP_INTERVALS, Timed, interval_s, orderly, since_gap
from haptera.health.rule import (
    GRADES,
    Beyond,
    Fingerprint,
    Grade,
    HealthRule,
    Mode,
    Threshold,
    Trend,
    Unchanged,
)
from haptera.health.trend import GLANCE, PARTS, Expectation, expected_at, may_rise

# A prediction that nothing has supported for this time is withdrawn.
WITHDRAWN_S: Final = 300.0
# A trend holds for as long as the limit lies within so many times what raises it.
KEPT_FACTOR: Final = 2.0


@dataclass(frozen=True, slots=True)
class Symptom:
    """A rule that holds on a machine: its start, its reading, and the expected time of the limit.

    `seen` is when it last held: what is silent is not healed.
    """

    rule: str
    sensor: str
    grade: Grade
    mode: Mode
    since: float
    seen: float
    value: float
    expected: Expectation | None = None


def judge(
    rule: HealthRule, sensor: str, points: Sequence[Timed], before: Symptom | None, now: float
) -> Symptom | None:
    """The symptom of one sensor under a rule, from its readings and the symptom before."""
    return said(rule, sensor, filtered(orderly(points, now), rule.pipeline.filters), before)


def said(
    rule: HealthRule, sensor: str, left: Sequence[Timed], before: Symptom | None
) -> Symptom | None:
    """As `judge`, of what the filters of the rule have left."""
    if not left:
        return before
    found: Held | None
    match rule.pipeline.test:
        case Threshold() as test:
            found = _beyond(test, left, before)
        case Trend() as test:
            found = _trending(test, left, before)
        case Unchanged() as test:
            found = _unchanged(test, left)
        case Fingerprint():
            return None  # it is of symptoms: see `fingerprints`
    if found is None:
        return None
    since, seen, expected = found
    grade = Grade.PREDICTED if isinstance(rule.pipeline.test, Trend) else rule.grade
    return Symptom(
        rule.name,
        sensor,
        grade,
        rule.mode,
        since if before is None else before.since,
        seen,
        left[-1].value,
        expected,
    )


def fingerprints(
    rules: Iterable[HealthRule], symptoms: Sequence[Symptom], before: Mapping[str, Symptom]
) -> Iterator[Symptom]:
    """The symptoms of rules over several others; `before` holds the previous ones by rule name."""
    for rule in rules:
        if not isinstance(test := rule.pipeline.test, Fingerprint):
            continue
        there = {one.rule: one for one in symptoms if one.rule in test.rules}
        if len(there) >= test.count:
            last = max(there.values(), key=lambda one: one.since)
            held = before.get(rule.name)
            since = last.since if held is None else held.since
            yield replace(last, rule=rule.name, grade=rule.grade, mode=rule.mode, since=since)


def grade_of(symptoms: Iterable[Symptom], *, is_read: bool) -> Grade:
    """The grade of a machine: the worst of these; unknown where no sensor of it is read."""
    least = Grade.OK if is_read else Grade.UNKNOWN
    return max((least, *(one.grade for one in symptoms)), key=GRADES.index)


def is_of(rule: HealthRule, sensor: str) -> bool:
    """True if the rule's pattern is this sensor, or matches its name without the item.

    >>> from haptera.health.rule import parse_pipeline
    >>> rule = HealthRule("hot", "temp.*", parse_pipeline("above 90"), Grade.DEGRADED)
    >>> is_of(rule, "temp.inlet"), is_of(rule, "temp.cpu[1]"), is_of(rule, "fan.speed")
    (True, True, False)
    """
    return is_named(rule.sensors, sensor)


def is_named(pattern: str, sensor: str) -> bool:
    """True if a pattern is this sensor, or matches its name without the item."""
    return sensor == pattern or fnmatchcase(sensor.partition("[")[0], pattern)


# The start, the last time it held, and the expectation.
Held = tuple[float, float, Expectation | None]


def _beyond(test: Threshold, points: Sequence[Timed], before: Symptom | None) -> Held | None:
    sign = _sign(test.side)
    near = since_gap(points, GAP_INTERVALS * interval_s(points))
    start = _since(near, lambda one: sign * one.value > sign * test.limit)
    if start is not None and near[-1].at - start >= test.hold_s:
        return start, near[-1].at, None
    if before is None:
        return None
    cleared = _since(near, lambda one: sign * one.value <= sign * test.clear)
    if cleared is not None and near[-1].at - cleared >= test.hold_s:
        return None
    return before.since, before.seen, None


def _since(points: Sequence[Timed], holds: Callable[[Timed], bool]) -> float | None:
    """Since when this holds of all up to the last one; None where it does not hold of that."""
    start = None
    for one in reversed(points):
        if not holds(one):
            break
        start = one.at
    return start


def _trending(test: Trend, points: Sequence[Timed], before: Symptom | None) -> Held | None:
    sign = _sign(test.side)
    if before is None:
        ends = (*points[:GLANCE], *points[-GLANCE:])
        if not may_rise([Timed(one.at, sign * one.value) for one in ends]):
            return None
    rising = [Timed(one.at, sign * one.value) for one in points]
    at, limit = rising[-1].at, sign * test.limit
    met = rising[-1].value >= limit
    expected = None if met else expected_at(rising, limit, test.window_s)
    if before is None:
        if expected is None or expected.likely - at > test.within_s:
            return None
        # Twice in a row: what a few readings say, the next ones may take back.
        earlier = [one for one in rising if one.at <= at - 2 * test.window_s / PARTS]
        again = expected_at(earlier, limit, test.window_s)
        return None if again is None else (at, at, expected)
    if met:
        return before.since, at, before.expected
    if expected is not None and expected.likely - at <= KEPT_FACTOR * test.within_s:
        return before.since, at, expected
    return None if at - before.seen >= WITHDRAWN_S else (before.since, before.seen, before.expected)


def _unchanged(test: Unchanged, points: Sequence[Timed]) -> Held | None:
    start = _since(points, lambda one: one.value == points[-1].value)
    if start is None or points[-1].at - start < test.hold_s:
        return None
    return start, points[-1].at, None


def _sign(side: Beyond) -> float:
    return 1.0 if side is Beyond.ABOVE else -1.0
