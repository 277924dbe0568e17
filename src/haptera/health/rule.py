"""A health rule: a pipeline over the readings of one sensor, or what several rules say together."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from haptera.health.filters import Decay, Filter, Median, Rise, Within
from haptera.model.errors import HapteraError, ParseError
from haptera.model.walltime import duration_text, parse_duration_ms

STAGES_MAX: Final = 6
MEDIAN_MAX: Final = 99
RULES_MAX: Final = 8
# A week: no more is kept as it was read.
DURATION_S_MAX: Final = 7 * 86_400


class Grade(StrEnum):
    """The health of a machine, the worst of what its rules say last."""

    UNKNOWN = "unknown"
    OK = "ok"
    DEGRADED = "degraded"
    PREDICTED = "predicted"
    FAILED = "failed"


GRADES: Final = tuple(Grade)


class Mode(StrEnum):
    """SUGGEST: it is shown, and nothing is done. ACT: the machine is spared, then taken out."""

    SUGGEST = "suggest"
    ACT = "act"


class Beyond(StrEnum):
    ABOVE = "above"
    BELOW = "below"


@dataclass(frozen=True, slots=True)
class Threshold:
    """Readings beyond a limit for so long; over once all were on this side of `clear` as long."""

    side: Beyond
    limit: float
    clear: float
    hold_s: int

    def __str__(self) -> str:
        clear = "" if self.clear == self.limit else f" clear {self.clear:g}"
        hold = f" for {duration_text(self.hold_s * 1_000)}" if self.hold_s else ""
        return f"{self.side} {self.limit:g}{clear}{hold}"


@dataclass(frozen=True, slots=True)
class Trend:
    """Readings that meet a limit within so long, as they have gone during a window."""

    side: Beyond
    limit: float
    within_s: int
    window_s: int

    def __str__(self) -> str:
        window, within = (duration_text(one * 1_000) for one in (self.window_s, self.within_s))
        return f"window {window} | trend {self.side} {self.limit:g} in {within}"


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Readings that have been the same for so long: a heartbeat that stopped."""

    hold_s: int

    def __str__(self) -> str:
        return f"unchanged {duration_text(self.hold_s * 1_000)}"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """So many at least of these rules say something of the machine at once."""

    count: int
    rules: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.count} of {', '.join(self.rules)}"


Test = Threshold | Trend | Unchanged | Fingerprint


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Filters, one after the other, and the test of what they leave."""

    filters: tuple[Filter, ...]
    test: Test

    def __str__(self) -> str:
        return " | ".join(map(str, (*self.filters, self.test)))


@dataclass(frozen=True, slots=True)
class HealthRule:
    """A rule over some sensors of a machine; `sensors` is a pattern, as `temp.*`.

    Of a sensor with items (`ecc.corrected[dimm0]`) it reads each. `source` says where its limits
    are from. Where fewer of its predictions than `precision`, in percent, come true, it only
    suggests.
    """

    name: str
    sensors: str
    pipeline: Pipeline
    grade: Grade
    mode: Mode = Mode.SUGGEST
    source: str = ""
    precision: int | None = None

    @property
    def reach_s(self) -> int:
        """The length of the test's window over filtered readings, in seconds."""
        match self.pipeline.test:
            case Threshold(hold_s=seconds) | Unchanged(hold_s=seconds) | Trend(window_s=seconds):
                return seconds
            case Fingerprint():
                return 0

    @property
    def window_s(self) -> int:
        """The length of the window over unfiltered readings, in seconds."""
        halves = [one.half_life_s for one in self.pipeline.filters if isinstance(one, Decay)]
        # After eight half-lives, less than 0.4 % of what was counts.
        return self.reach_s + 8 * sum(halves)


def parse_pipeline(text: str) -> Pipeline:
    """Read the stages of a pipeline: filters, perhaps a window, and a test.

    >>> str(parse_pipeline("median 5 | window 30m | trend above 45 in 20m"))
    'median 5 | window 30m | trend above 45 in 20m'
    >>> str(parse_pipeline("rise | decay 12h | above 24"))
    'rise | decay 12h | above 24'

    Raises:
        HapteraError: it is none.
    """
    stages = [one.strip() for one in text.split("|")]
    if len(stages) > STAGES_MAX:
        raise ParseError(f"{len(stages)} stages", do=f"write {STAGES_MAX} at most")
    window = _WINDOW.fullmatch(stages[-2]) if len(stages) > 1 else None
    test = _test(stages[-1], None if window is None else _seconds(window[1]))
    if isinstance(test, Fingerprint) and len(stages) > 1:
        raise ParseError("a fingerprint reads rules, not readings", do=f"write only {test}")
    before = stages[: -1 if window is None else -2]
    return Pipeline(tuple(map(_filter, before)), test)


_NUMBER: Final = r"(-?[0-9]{1,15}(?:\.[0-9]{1,9})?)"
_TIME: Final = r"([0-9]{1,8}[a-z]{1,2})"
_WINDOW: Final = re.compile(rf"window\s+{_TIME}")
_THRESHOLD: Final = re.compile(
    rf"(above|below)\s+{_NUMBER}(?:\s+clear\s+{_NUMBER})?(?:\s+for\s+{_TIME})?"
)
_TREND: Final = re.compile(rf"trend\s+(above|below)\s+{_NUMBER}\s+in\s+{_TIME}")
_UNCHANGED: Final = re.compile(rf"unchanged\s+{_TIME}")
_FINGERPRINT: Final = re.compile(r"([0-9]{1,2})\s+of\s+([\w.-]+(?:\s*,\s*[\w.-]+)*)", re.ASCII)
_FILTERS: Final[tuple[tuple[re.Pattern[str], Callable[[tuple[str, ...]], Filter]], ...]] = (
    (re.compile(rf"within\s+{_NUMBER}\s+{_NUMBER}"), lambda found: _within(*found)),
    (re.compile(r"median\s+([0-9]{1,3})"), lambda found: _median(*found)),
    (re.compile(r"(rise)"), lambda _: Rise()),
    (re.compile(rf"decay\s+{_TIME}"), lambda found: Decay(_seconds(*found))),
)


def _filter(text: str) -> Filter:
    for pattern, made in _FILTERS:
        if (found := pattern.fullmatch(text)) is not None:
            return made(found.groups())
    raise ParseError(
        f"{text!r} is no filter", do="write within LOW HIGH, median COUNT, rise or decay TIME"
    )


def _test(text: str, window_s: int | None) -> Test:
    if (found := _TREND.fullmatch(text)) is not None:
        if window_s is None:
            raise ParseError("a trend needs its window", do="write window 30m | trend …")
        return Trend(Beyond(found[1]), float(found[2]), _seconds(found[3]), window_s)
    if window_s is not None:
        raise ParseError("only a trend has a window", do="write above LIMIT for TIME")
    if (found := _THRESHOLD.fullmatch(text)) is not None:
        return _threshold(*found.groups())
    if (found := _UNCHANGED.fullmatch(text)) is not None:
        return Unchanged(_seconds(found[1]))
    if (found := _FINGERPRINT.fullmatch(text)) is not None:
        return _fingerprint(int(found[1]), tuple(re.split(r"\s*,\s*", found[2])))
    do = "write above LIMIT, below LIMIT, trend above LIMIT in TIME, unchanged TIME or 2 of RULE, …"
    raise ParseError(f"{text!r} is no test", do=do)


def _threshold(side: str, limit: str, clear: str | None, hold: str | None) -> Threshold:
    made = Threshold(
        Beyond(side),
        float(limit),
        float(limit if clear is None else clear),
        0 if hold is None else _seconds(hold),
    )
    wrong = made.clear > made.limit if made.side is Beyond.ABOVE else made.clear < made.limit
    if wrong:
        raise HapteraError(f"clear {clear} lies beyond {limit}", do="clear on the good side of it")
    return made


def _fingerprint(count: int, rules: tuple[str, ...]) -> Fingerprint:
    if not 1 <= count <= len(rules) <= RULES_MAX or len(set(rules)) < len(rules):
        do = f"name each rule once, {RULES_MAX} at most, and no more of them than there are"
        raise HapteraError(f"{count} of {len(rules)} rules", do=do)
    return Fingerprint(count, rules)


def _within(low: str, high: str) -> Within:
    if float(low) > float(high):
        raise HapteraError(f"nothing is within {low} and {high}", do="write the lower one first")
    return Within(float(low), float(high))


def _median(count: str) -> Median:
    if not 1 <= int(count) <= MEDIAN_MAX or int(count) % 2 == 0:
        raise HapteraError(f"median {count}", do=f"write an odd number up to {MEDIAN_MAX}")
    return Median(int(count))


def _seconds(text: str) -> int:
    seconds = parse_duration_ms(text) // 1_000
    if not 1 <= seconds <= DURATION_S_MAX:
        raise HapteraError(f"{text} is out of range", do="write 1s to 7d")
    return seconds
