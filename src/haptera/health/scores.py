"""The outcomes of predictions, each scored once; rules that are wrong too often only suggest."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from haptera.health.care import FRESH_S
from haptera.health.judge import KEPT_FACTOR, Symptom
from haptera.health.rule import Beyond, HealthRule, Trend

# Fewer decided predictions say nothing of a rule.
DECIDED_MIN: Final = 10


class PredictionOutcome(StrEnum):
    """UNDECIDED: the machine was taken into care before, or is not read any more."""

    CAME_TRUE = "came_true"
    CAME_NOT = "came_not"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Score:
    """The numbers of a rule's predictions by their outcomes."""

    came_true: int = 0
    came_not: int = 0
    undecided: int = 0

    @property
    def decided(self) -> int:
        return self.came_true + self.came_not

    def is_below(self, precision: int | None) -> bool:
        """True if fewer came true than a declared precision, in percent, demands.

        >>> Score(came_true=8, came_not=2).is_below(90), Score(came_true=8, came_not=1).is_below(90)
        (True, False)
        """
        enough = precision is not None and self.decided >= DECIDED_MIN
        return enough and 100 * self.came_true < (precision or 0) * self.decided

    def with_one(self, outcome: PredictionOutcome) -> "Score":
        return replace(self, **{outcome.value: getattr(self, outcome.value) + 1})


# Predictions of a machine, by rule and sensor: the time at which each is decided; None once it is.
_Open = dict[tuple[str, str], float | None]


class ScoreBoard:
    """The predictions that stand, and the scores of all rules so far."""

    def __init__(self, scores: Mapping[str, Score]) -> None:
        self.scores = dict(scores)
        self._open: dict[str, _Open] = {}

    def look(
        self,
        machine: str,
        symptoms: Iterable[Symptom],
        rules: Mapping[str, HealthRule],
        now: float,
        *,
        in_care: bool,
    ) -> None:
        """Score what has come of a machine's predictions by now."""
        predicted = self._open.setdefault(machine, {})
        there = set[tuple[str, str]]()
        for one in symptoms:
            rule = rules.get(one.rule)
            if rule is None or not isinstance(test := rule.pipeline.test, Trend):
                continue
            key = one.rule, one.sensor
            there.add(key)
            due = predicted.setdefault(key, one.since + KEPT_FACTOR * test.within_s)
            if (
                due is not None
                and (outcome := _outcome(one, test, due, now, in_care=in_care)) is not None
            ):
                predicted[key] = None
                self._score(one.rule, outcome)
        for key in predicted.keys() - there:
            if predicted.pop(key) is not None:
                # Withdrawn, before its time was over; of a rule that is gone, nobody knows.
                known = key[0] in rules and not in_care
                outcome = PredictionOutcome.CAME_NOT if known else PredictionOutcome.UNDECIDED
                self._score(key[0], outcome)
        if not predicted:
            del self._open[machine]

    def distrusted(self, rules: Mapping[str, HealthRule]) -> frozenset[str]:
        """The rules whose precision is below what the site declares of them."""
        return frozenset(
            name
            for name, one in rules.items()
            if self.scores.get(name, Score()).is_below(one.precision)
        )

    def _score(self, rule: str, outcome: PredictionOutcome) -> None:
        self.scores[rule] = self.scores.get(rule, Score()).with_one(outcome)


def _outcome(
    one: Symptom, test: Trend, due: float, now: float, *, in_care: bool
) -> PredictionOutcome | None:
    """The result of a prediction; None while it stands."""
    sign = 1.0 if test.side is Beyond.ABOVE else -1.0
    if sign * one.value >= sign * test.limit:
        return PredictionOutcome.CAME_TRUE
    if in_care:
        return PredictionOutcome.UNDECIDED
    if now < due:
        return None
    return PredictionOutcome.CAME_NOT if now - one.seen <= FRESH_S else PredictionOutcome.UNDECIDED
