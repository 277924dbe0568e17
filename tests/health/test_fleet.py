"""The bundled trend rules on synthetic fleets: predictions come true, and little is missed."""

import pytest

from haptera.health.bundled import BUNDLED, TRENDS
from haptera.health.rule import parse_pipeline
from tests.health.fleet import KINDS, Score, episodes, fleet

PRECISION_MIN = 0.95
RECALL_MIN = 0.9


A_FEW = pytest.param(range(24), id="a few", marks=pytest.mark.slow)
# 1,000, a hundred at a time.
MANY = [
    pytest.param(range(start, start + 100), id=f"from {start}", marks=pytest.mark.campaign)
    for start in range(1_000, 2_000, 100)
]


@pytest.mark.parametrize("seeds", [A_FEW, *MANY])
def test_what_is_predicted_comes_true_and_is_predicted_ten_minutes_ahead(
    seeds: range,
) -> None:
    score, faults = Score(), []
    for seed in seeds:
        for one in fleet(seed):
            wrong, missed = score.add(one, episodes(one))
            if wrong or missed:
                what = f"{wrong} wrong" if wrong else "missed"
                faults.append(f"seed {seed}, {one.rule.name}, {one.shape}: {what}")
    assert score.met > len(seeds), "most fleets have one that fails"
    assert score.precision >= PRECISION_MIN, faults
    assert score.recall >= RECALL_MIN, faults


def test_fleets_have_sensors_of_all_bundled_trend_rules() -> None:
    assert {one.rule for one in KINDS} == {one.name for one in TRENDS}


def test_each_bundled_rule_is_written_as_it_is_read_and_has_a_source() -> None:
    for one in BUNDLED:
        assert parse_pipeline(str(one.pipeline)) == one.pipeline
        assert one.source
