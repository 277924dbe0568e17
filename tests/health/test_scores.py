"""The outcomes of predictions, each once, and the precision below which a rule does not act."""

import pytest

from haptera.health.judge import Symptom
from haptera.health.rule import Grade, HealthRule, Mode, parse_pipeline
from haptera.health.scores import DECIDED_MIN, Score, ScoreBoard
from haptera.health.trend import Expectation

NOW = 1_795_284_000.0
RULES = {
    "ramp": HealthRule(
        "ramp",
        "temp.inlet",
        parse_pipeline("window 10m | trend above 40 in 10m"),
        Grade.PREDICTED,
        Mode.ACT,
        precision=90,
    ),
    "hot": HealthRule("hot", "temp.inlet", parse_pipeline("above 40"), Grade.DEGRADED),
}
# Twice the time within which the rule predicts.
DUE = NOW + 1_200


def ramp(value: float, seen: float = NOW) -> Symptom:
    expected = Expectation(NOW + 300, NOW + 400, NOW + 500)
    return Symptom("ramp", "temp.inlet", Grade.PREDICTED, Mode.ACT, NOW, seen, value, expected)


@pytest.fixture
def board() -> ScoreBoard:
    found = ScoreBoard({})
    found.look("n1", [ramp(35)], RULES, NOW, in_care=False)
    assert found.scores == {}
    return found


def test_a_limit_that_is_met_counts_once_however_long_it_is_met(board: ScoreBoard) -> None:
    for after in (100, 200, 5_000):
        board.look("n1", [ramp(41, NOW + after)], RULES, NOW + after, in_care=after > 100)
    assert board.scores == {"ramp": Score(came_true=1)}

    # Over, and again: that is another one.
    board.look("n1", [], RULES, NOW + 6_000, in_care=False)
    board.look("n1", [ramp(39)], RULES, NOW + 6_000, in_care=True)
    assert board.scores == {"ramp": Score(came_true=1, undecided=1)}


def test_what_is_withdrawn_or_late_did_not_come(board: ScoreBoard) -> None:
    board.look("n1", [], RULES, NOW + 400, in_care=False)
    assert board.scores == {"ramp": Score(came_not=1)}

    board.look("n2", [ramp(35)], RULES, NOW, in_care=False)
    board.look("n2", [ramp(39, DUE - 1)], RULES, DUE - 1, in_care=False)
    assert board.scores == {"ramp": Score(came_not=1)}
    board.look("n2", [ramp(39, DUE)], RULES, DUE, in_care=False)
    assert board.scores == {"ramp": Score(came_not=2)}


def test_of_a_machine_in_care_or_silent_or_of_a_rule_that_is_gone_nothing_is_decided() -> None:
    board = ScoreBoard({})
    for name in ("n1", "n2", "n3"):
        board.look(name, [ramp(35)], RULES, NOW, in_care=False)
    board.look("n1", [ramp(36)], RULES, NOW + 60, in_care=True)
    board.look("n2", [ramp(36)], RULES, DUE + 60, in_care=False)
    board.look("n3", [], {}, NOW + 60, in_care=False)
    assert board.scores == {"ramp": Score(undecided=3)}


def test_rules_that_predict_nothing_have_no_score() -> None:
    board = ScoreBoard({})
    hot = Symptom("hot", "temp.inlet", Grade.DEGRADED, Mode.SUGGEST, NOW, NOW, 45.0)
    board.look("n1", [hot], RULES, NOW, in_care=False)
    board.look("n1", [], RULES, NOW, in_care=False)
    assert board.scores == {}


def test_a_rule_below_its_precision_is_not_trusted_once_enough_is_decided() -> None:
    few = Score(came_not=DECIDED_MIN - 1)
    assert ScoreBoard({"ramp": few}).distrusted(RULES) == frozenset()
    assert ScoreBoard({"ramp": Score(came_not=DECIDED_MIN)}).distrusted(RULES) == {"ramp"}
    right = Score(came_true=9, came_not=1, undecided=50)
    assert ScoreBoard({"ramp": right, "hot": few}).distrusted(RULES) == frozenset()
