"""One rule on one sensor, as its readings come in: little is kept, and little is done for each."""

from collections import deque
from math import isfinite
from typing import Final

from haptera.health.filters import FilterChain
from haptera.health.judge import Symptom, said
from haptera.health.readings import AHEAD_S_MAX, OVERTAKEN_S_MAX, Timed
from haptera.health.rule import HealthRule, Trend
from haptera.health.trend import PARTS

# A test reads so many of the last readings at most, whatever it reaches.
KEPT_MAX: Final = 1_024


class Track:
    """The state of one rule on one sensor; `symptom` is its current verdict."""

    def __init__(self, rule: HealthRule, sensor: str) -> None:
        self.rule = rule
        self.sensor = sensor
        self.symptom: Symptom | None = None
        # The time of the last reading, in seconds since 1970.
        self.read_at: float | None = None
        test = rule.pipeline.test
        # One more reading changes no trend before a part of its window is over.
        self._step_s = test.window_s / PARTS if isinstance(test, Trend) else 0.0
        self._judged_at: float | None = None
        self._begin_anew()

    def add(self, one: Timed, now: float) -> bool:
        """Read a value; whether the rule says something else now than before."""
        if not (isfinite(one.at) and isfinite(one.value)) or one.at > now + AHEAD_S_MAX:
            return False
        if self.read_at is not None and one.at <= self.read_at:
            if one.at > self.read_at - OVERTAKEN_S_MAX:
                return False
            # The clock was set back: what was read before is of another one.
            self._begin_anew()
        self.read_at = one.at
        if (left := self._chain.feed(one)) is None:
            return False
        self._kept.append(left)
        # One that lies before the reach stays, so that a hold is seen to be over.
        while len(self._kept) > 2 and self._kept[1].at < left.at - self.rule.reach_s:
            self._kept.popleft()
        if self._judged_at is not None and 0 <= one.at - self._judged_at < self._step_s:
            return False
        self._judged_at = one.at
        before = self.symptom
        self.symptom = said(self.rule, self.sensor, tuple(self._kept), before)
        return (before is None) is not (self.symptom is None)

    def _begin_anew(self) -> None:
        self._chain = FilterChain(self.rule.pipeline.filters)
        self._kept: deque[Timed] = deque(maxlen=KEPT_MAX)
