"""Health rules as a site declares them."""

import pytest

from haptera.health.bundled import BUNDLED
from haptera.health.rule import Grade, HealthRule, Mode, parse_pipeline
from haptera.kinds.rules.health_rule import health_rule, kind, precision
from haptera.model.errors import HapteraError
from haptera.selectors.selector import parse_selector


def test_a_rule_is_what_it_declares_and_only_suggests_unless_it_says_otherwise() -> None:
    pipeline = "window 30m | trend above 40 in 20m"
    assert health_rule("mine", {"sensors": "temp.*", "pipeline": pipeline}) == HealthRule(
        "mine", "temp.*", parse_pipeline(pipeline), Grade.PREDICTED, Mode.SUGGEST
    )
    given = {"sensors": "fan.*", "pipeline": "below 500", "grade": "failed", "mode": "act"}
    made = health_rule("slow", given)
    assert (made.grade, made.mode) == (Grade.FAILED, Mode.ACT)


def test_each_bundled_rule_can_be_declared() -> None:
    for one in BUNDLED:
        values = {
            "sensors": one.sensors,
            "pipeline": str(one.pipeline),
            "grade": one.grade.value,
            "mode": one.mode.value,
            "origin": one.source,
        }
        for plain in kind.plain:
            if plain is precision:
                continue  # a site's own
            assert len(values[plain.name].encode()) <= plain.size_bytes_max
            if plain.check is not None:
                plain.check(values[plain.name])
        assert health_rule(one.name, values) == one


@pytest.mark.parametrize(
    "values",
    [{}, {"sensors": "temp.*"}, {"pipeline": "above 1"}],
    ids=["nothing", "no pipeline", "no sensors"],
)
def test_what_says_no_rule_is_refused(values: dict[str, str]) -> None:
    assert kind.whole is not None
    with pytest.raises(HapteraError):
        kind.whole(values)


def test_a_fingerprint_reads_no_sensor() -> None:
    assert health_rule("both", {"pipeline": "2 of a, b"}).sensors == ""


def test_rules_can_be_selected() -> None:
    parse_selector("health-rule:*")
    parse_selector("health-rule.mode=act")
