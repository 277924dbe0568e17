"""Which machines are spared, taken out and given back: within budgets, whatever sensors say."""

from dataclasses import replace
from random import Random

import pytest

from haptera.health.care import (
    COMMON_MIN,
    COMMON_SHARE,
    FRESH_S,
    CareDecision,
    CareLimits,
    CareStage,
    Patient,
    decide_care,
)
from haptera.health.judge import Symptom
from haptera.health.rule import Grade, Mode
from haptera.health.trend import Expectation

NOW = 10_000.0
LIMITS = CareLimits(at_once=2, share=50, well_s=600)


def symptom(
    rule: str = "inlet-trend",
    grade: Grade = Grade.PREDICTED,
    mode: Mode = Mode.ACT,
    expected: float | None = None,
    seen: float = NOW,
) -> Symptom:
    likely = None if expected is None else Expectation(expected, expected, expected)
    return Symptom(rule, "temp.inlet", grade, mode, NOW - 60, seen, 33.0, likely)


def well(count: int, start: int = 1) -> list[Patient]:
    return [Patient(f"w{number}", well_since=0) for number in range(start, start + count)]


def test_a_machine_that_a_rule_speaks_of_is_spared_with_its_words() -> None:
    ill = Patient("n1", [symptom(expected=NOW + 900)])
    assert decide_care([ill, *well(5)], LIMITS, NOW) == CareDecision(
        spare={"n1": "inlet-trend: temp.inlet at 33 (predicted)"}
    )


def test_a_suggestion_moves_nothing() -> None:
    ill = Patient("n1", [symptom(mode=Mode.SUGGEST)])
    assert decide_care([ill, *well(5)], LIMITS, NOW) == CareDecision()


def test_what_was_seen_long_ago_moves_nothing() -> None:
    ill = Patient("n1", [symptom(seen=NOW - FRESH_S - 1)])
    assert decide_care([ill, *well(5)], LIMITS, NOW) == CareDecision()


def test_the_worst_and_the_most_urgent_come_first_and_the_budget_stops_the_rest() -> None:
    patients = [
        Patient("n1", [symptom("a", expected=NOW + 900)]),
        Patient("n2", [symptom("b", expected=NOW + 300)]),
        Patient("n3", [symptom("c", Grade.FAILED)]),
        *well(9),
    ]
    decision = decide_care(patients, LIMITS, NOW)
    assert [*decision.spare] == ["n3", "n2"]
    assert decision.held == {"n1": "2 are in care, and no more may be"}


def test_a_spared_machine_is_taken_out_once_it_is_empty() -> None:
    spared = Patient("n1", [symptom()], CareStage.SPARED, holds=True)
    assert decide_care([spared, *well(5)], LIMITS, NOW).take_out == ()
    empty = replace(spared, holds=False)
    assert decide_care([empty, *well(5)], LIMITS, NOW).take_out == ("n1",)


@pytest.mark.parametrize("stage", CareStage)
def test_it_is_given_back_once_it_was_well_for_long_enough_and_not_before(stage) -> None:
    for since, back in ((NOW - 599, ()), (NOW - 600, ("n1",)), (None, ())):
        one = Patient("n1", stage=stage, well_since=since, holds=True)
        assert decide_care([one, *well(5)], LIMITS, NOW).give_back == back


def test_a_sensor_that_is_broken_on_all_machines_disturbs_none() -> None:
    patients = [Patient(f"n{number}", [symptom()]) for number in range(10)]
    decision = decide_care(patients, LIMITS, NOW)
    assert decision.spare == {}
    assert set(decision.held.values()) == {"inlet-trend speaks of 10 machines at once"}


def test_who_is_given_back_makes_room_at_once() -> None:
    back = Patient("n2", stage=CareStage.OUT, well_since=0)
    patients = [Patient("n1", [symptom()]), back, *well(5)]
    decision = decide_care(patients, replace(LIMITS, at_once=1), NOW)
    assert ([*decision.spare], decision.give_back) == (["n1"], ("n2",))


def test_a_brake_holds_back_what_is_new_and_never_the_way_back() -> None:
    patients = [
        Patient("n1", [symptom()]),
        Patient("n2", stage=CareStage.OUT, well_since=0),
        *well(5),
    ]
    decision = decide_care(patients, LIMITS, NOW, brake="the brake is on")
    assert decision == CareDecision(give_back=("n2",), held={"n1": "the brake is on"})


@pytest.mark.parametrize("seed", range(200))
def test_whatever_sensors_say_the_budget_holds_and_all_that_is_well_comes_back(seed: int) -> None:
    rng = Random(seed)
    limits = CareLimits(rng.randrange(1, 5), rng.choice((5, 10, 30)), well_s=600)
    patients = {f"n{number}": Patient(f"n{number}") for number in range(rng.randrange(4, 30))}
    most, disturbed, now = limits.most(len(patients)), 0, NOW
    for _ in range(60):
        now += 60
        storm = rng.random() < 0.1
        for name, one in patients.items():
            ill = storm or rng.random() < 0.1
            symptoms = [symptom(rng.choice("abc"), seen=now)] if ill else []
            since = None if ill else (now if one.well_since is None else one.well_since)
            holds = one.holds and rng.random() < 0.5
            patients[name] = replace(one, symptoms=symptoms, well_since=since, holds=holds)
        before = patients.copy()
        decision = decide_care(patients.values(), limits, now)
        for name in decision.spare:
            assert before[name].stage is None
            told = {each.rule for each in before[name].symptoms}
            speaks = [one for one in before.values() if {e.rule for e in one.symptoms} & told]
            assert len(speaks) < max(COMMON_MIN, COMMON_SHARE * len(before))
            patients[name] = replace(before[name], stage=CareStage.SPARED, holds=True)
            disturbed += 1
        for name in decision.take_out:
            assert before[name].stage is CareStage.SPARED
            assert not before[name].holds
            patients[name] = replace(patients[name], stage=CareStage.OUT)
        for name in decision.give_back:
            assert before[name].stage is not None
            patients[name] = replace(patients[name], stage=None)
        assert sum(one.stage is not None for one in patients.values()) <= most
    for name, one in patients.items():
        patients[name] = replace(one, symptoms=[], well_since=0.0)
    last = decide_care(patients.values(), limits, now)
    assert {*last.give_back} == {name for name, one in patients.items() if one.stage is not None}
    assert disturbed > 0 or len(patients) < 6
