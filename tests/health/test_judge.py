"""What health rules say of readings: limits, trends, counters, and all that sensors do to them."""

from collections.abc import Iterable
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.health.filters import filtered
from haptera.health.judge import Symptom, fingerprints, grade_of, is_of, judge
from haptera.health.readings import Timed
from haptera.health.rule import Grade, HealthRule, Mode, parse_pipeline
from haptera.health.track import Track
from haptera.health.trend import expected_at
from haptera.health.ward import TRACKS_MAX, Ward
from haptera.model.errors import HapteraError

RAMP = "window 30m | trend above 45 in 30m"


def rule(pipeline: str, grade: Grade = Grade.DEGRADED, name: str = "hot") -> HealthRule:
    return HealthRule(name, "temp.*", parse_pipeline(pipeline), grade)


def said(
    of: HealthRule, values: Iterable[float], every_s: float = 10
) -> list[tuple[float, str | None]]:
    """When what is said changes, as the readings come in."""
    points: list[Timed] = []
    symptom: Symptom | None = None
    found: list[tuple[float, str | None]] = []
    for number, value in enumerate(values):
        points.append(Timed(number * every_s, value))
        now = judge(of, "temp.inlet", points, symptom, number * every_s)
        if (now is None) != (symptom is None):
            found.append((number * every_s, None if now is None else now.grade))
        symptom = now
    return found


@given(
    st.sampled_from(
        ["above 42 clear 38 for 20s", "rise | decay 1m | above 40", "median 3 | below 20"]
    ),
    st.lists(
        st.tuples(st.integers(-30, 90), st.one_of(st.integers(0, 60), st.just(float("nan")))),
        max_size=60,
    ),
)
def test_a_track_says_what_all_readings_together_say(text, steps) -> None:
    """However they come in: late, twice, or by a clock that was set back."""
    of = rule(text)
    track, points, symptom, at = Track(of, "temp.inlet"), [], None, 1_000.0
    for step, value in steps:
        at += step
        points.append(Timed(at, float(value)))
        track.add(points[-1], at)
        symptom = judge(of, "temp.inlet", points, symptom, at)
        assert track.symptom == symptom


def ramp(minutes: int, slope: float, level: float = 25.0) -> list[float]:
    """Readings each 10 s: half an hour of peace, then so much more each minute."""
    return [level] * 180 + [level + slope * number / 6 for number in range(minutes * 6)]


def test_a_limit_counts_once_it_is_passed_for_long_enough_and_until_it_is_clear_as_long() -> None:
    values = [40, 43, 43, 40, 43, 43, 43, 41, 39, 37, 37, 37, 37]
    assert said(rule("above 42 clear 38 for 20s"), values) == [(60, "degraded"), (110, None)]


def test_a_limit_below_is_one() -> None:
    assert said(rule("below 1000 clear 1200"), [1500, 900, 1100, 1200]) == [
        (10, "degraded"),
        (30, None),
    ]


def test_a_ramp_is_predicted_before_its_limit_with_the_time_of_it() -> None:
    values = ramp(80, slope=0.25)
    points = [Timed(10.0 * number, value) for number, value in enumerate(values[: 180 + 55 * 6])]
    symptom = judge(rule(RAMP), "temp.inlet", points, None, points[-1].at)
    assert symptom is not None
    assert symptom.grade is Grade.PREDICTED
    assert symptom.expected is not None
    meets_at = 1_800 + 80 * 60
    assert abs(symptom.expected.likely - meets_at) < 60
    assert symptom.expected.earliest <= symptom.expected.likely <= symptom.expected.latest


@pytest.mark.parametrize(
    "values",
    [
        [25.0] * 180 + [40.0] * 360,
        [25.0 + 5 * (number % 2) for number in range(720)],
        [25.0] * 180 + [44 - 19 * 0.5 ** (number / 30) for number in range(360)],
        ramp(20, slope=0.25) + [30.0] * 360,
        [25.0, *[25.0, 200.0, 25.0] * 200],
    ],
    ids=["a step", "jitter", "a warm-up", "a ramp that ends early", "spikes"],
)
def test_what_does_not_rise_steadily_is_not_predicted(values: list[float]) -> None:
    assert said(rule(f"median 5 | {RAMP}"), values[::3], every_s=30) == []


def test_a_rise_that_stands_still_and_then_falls_meets_nothing() -> None:
    """Its third quarter has no slope at all, and the fourth one begins higher, and falls."""
    still = [120.0, 120.0, 120.0, 120.0, 121.0, 120.0, 121.0, 121.0]
    fallen = [229.0, 228.0, 226.0, 225.0, 223.0, 227.0, 222.0, 224.0]
    values = [7.5 * step for step in range(16)] + still + fallen
    points = [Timed(60.0 * part + 30, value) for part, value in enumerate(values)]

    assert expected_at(points, 1e6, window_s=32 * 60) is None


@given(
    st.sampled_from(
        ["window 2m | trend above 45 in 20m", "rise | decay 1m | window 2m | trend below 0 in 7d"]
    ),
    st.lists(
        st.tuples(
            st.sampled_from([1e-9, 1, 4, 30]),
            st.one_of(st.integers(-2, 2), st.floats(allow_nan=False, allow_infinity=False)),
        ),
        max_size=60,
    ),
)
def test_no_readings_whatever_break_a_rule(text, steps) -> None:
    track, at = Track(rule(text), "temp.inlet"), 1_000.0
    for step, value in steps:
        at += step
        track.add(Timed(at, float(value)), at)
        expected = None if track.symptom is None else track.symptom.expected
        assert expected is None or isfinite(expected.likely)


def test_a_prediction_is_withdrawn_once_nothing_speaks_for_it() -> None:
    values = [*ramp(60, slope=0.25), *[38.0] * 400]
    found = said(rule(RAMP), values[::3], every_s=30)
    assert [what for _, what in found] == ["predicted", None]


def test_what_was_predicted_stays_so_while_the_limit_is_passed() -> None:
    found = said(rule(RAMP), ramp(120, slope=0.25)[::3], every_s=30)
    assert [what for _, what in found] == ["predicted"]
    assert found[0][0] < 1_800 + 80 * 60 - 600


def test_a_gap_ends_a_hold_and_a_trend_that_nothing_was_seen_of() -> None:
    hot = rule("above 42 for 1m")
    points = [Timed(at, 43.0) for at in (0, 10, 20, 30, 1_000, 1_010)]
    assert judge(hot, "temp.inlet", points, None, 1_010) is None
    values = ramp(50, slope=0.25)
    early = [Timed(10.0 * number, value) for number, value in enumerate(values[:400])]
    late = [Timed(10.0 * number, value) for number, value in enumerate(values)][478:]
    assert judge(rule(RAMP), "temp.inlet", [*early, *late], None, late[-1].at) is None


def test_a_clock_that_was_set_back_begins_anew_and_one_ahead_is_not_believed() -> None:
    hot = rule("above 42 for 30s")
    old = [Timed(5_000 + at, 43.0) for at in range(0, 100, 10)]
    new = [Timed(float(at), 43.0) for at in (0, 10, 20)]
    assert judge(hot, "temp.inlet", [*old, *new], None, 20) is None
    assert judge(hot, "temp.inlet", [*old, *new, Timed(30, 43.0)], None, 30) is not None
    assert judge(hot, "temp.inlet", [Timed(10, 20.0), Timed(9_000, 90.0)], None, 10) is None


def test_readings_that_are_no_numbers_or_that_no_sensor_has_say_nothing() -> None:
    nan, huge = float("nan"), float("inf")
    assert said(rule("within 0 120 | above 42"), [20, nan, huge, 255, -128, 20]) == []


def test_what_falls_silent_is_not_healed() -> None:
    before = judge(rule("above 42"), "temp.inlet", [Timed(0, 50.0)], None, 0)
    assert before is not None
    assert judge(rule("above 42"), "temp.inlet", [], before, 86_400) == before


@pytest.mark.parametrize(
    ("counter", "rises"),
    [
        ([5, 6, 9], [1, 3]),
        ([90, 92, 1, 4], [2, 0, 3]),
        ([90, 0, 91], [0, 1]),
    ],
    ids=["it counts", "it was reset", "it was misread"],
)
def test_a_counter_counts_what_it_rose_by(counter: list[float], rises: list[float]) -> None:
    points = [Timed(float(at), value) for at, value in enumerate(counter)]
    pipeline = parse_pipeline("rise | above 1")
    assert [one.value for one in filtered(points, pipeline.filters)] == rises


def test_what_is_counted_decays_by_half_in_each_half_life() -> None:
    points = [
        Timed(0, 0.0),
        Timed(1, 8.0),
        Timed(3_601, 8.0),
        Timed(7_201, 8.0),
    ]
    left = filtered(points, parse_pipeline("rise | decay 1h | above 1").filters)
    assert [round(one.value, 6) for one in left] == [8, 4, 2]


def test_a_heartbeat_that_stops_is_noticed() -> None:
    assert said(rule("unchanged 1m"), [*range(5), *[5] * 9, 6]) == [
        (110, "degraded"),
        (140, None),
    ]


def test_a_fingerprint_is_several_symptoms_at_once_and_no_fewer() -> None:
    both = rule("2 of hot, slow", Grade.FAILED, "fan-dead")
    hot = Symptom("hot", "temp.inlet", Grade.DEGRADED, Mode.SUGGEST, 10, 60, 43.0)
    slow = Symptom("slow", "fan.1", Grade.DEGRADED, Mode.SUGGEST, 50, 60, 0.0)
    assert list(fingerprints([both], [hot], {})) == []
    (found,) = fingerprints([both], [hot, slow], {})
    assert (found.rule, found.grade, found.since) == ("fan-dead", Grade.FAILED, 50)


def test_a_machine_is_as_healthy_as_its_worst_symptom_and_unknown_where_nothing_is_read() -> None:
    hot = Symptom("hot", "temp.inlet", Grade.DEGRADED, Mode.SUGGEST, 10, 60, 43.0)
    worse = Symptom("ramp", "temp.inlet", Grade.PREDICTED, Mode.SUGGEST, 10, 60, 43.0)
    assert grade_of([hot, worse], is_read=True) is Grade.PREDICTED
    assert grade_of([], is_read=True) is Grade.OK
    assert grade_of([], is_read=False) is Grade.UNKNOWN


def test_a_rule_reads_the_sensors_of_its_pattern() -> None:
    assert is_of(rule("above 1"), "temp.inlet")
    assert not is_of(rule("above 1"), "fan.inlet")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "above",
        "above 42 clear 50",
        "below 5 clear 4",
        "trend above 45 in 30m",
        "window 30m | above 45",
        "median 4 | above 45",
        "median 1001 | above 45",
        "within 5 1 | above 45",
        "rise | 1 of hot",
        "3 of hot, slow",
        "2 of hot, hot",
        "decay 0s | above 1",
        "decay 90d | above 1",
        "above nan",
        "rise |" * 9 + "above 1",
    ],
)
def test_what_is_no_pipeline_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(HapteraError) as raised:
        parse_pipeline(text)
    assert raised.value.do


def test_a_machine_whose_sensors_change_their_names_is_not_tracked_without_end() -> None:
    ward = Ward([rule("above 40")])
    ward.add("n2", "temp.cpu[0]", Timed(0, 41.0), 0)
    for at in range(2 * TRACKS_MAX):
        ward.add("n1", "temp.inlet", Timed(at, 41.0), at)
        ward.add("n1", f"temp.cpu[{at}]", Timed(at, 41.0), at)

    # What is read goes before what was read, and other machines have their own.
    found = {one.sensor for one in ward.symptoms("n1")}
    assert len(found) == TRACKS_MAX
    assert {"temp.inlet", f"temp.cpu[{2 * TRACKS_MAX - 1}]"} <= found
    assert len(ward.symptoms("n2")) == 1
