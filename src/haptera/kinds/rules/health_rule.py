"""A rule on a node's health from sensors' readings, as a site has it: see `haptera.health`."""

from collections.abc import Mapping
from typing import Final

from haptera.health.rule import (
    Fingerprint,
    Grade,
    HealthRule,
    Mode,
    Pipeline,
    Trend,
    parse_pipeline,
)
from haptera.model.declared.desired_check import between, one_of
from haptera.model.declared.schema import Kind, Plain
from haptera.model.errors import Code, HapteraError

PIPELINE_BYTES_MAX: Final = 200
# The grades that a rule may give a machine.
GRADES: Final = (Grade.DEGRADED, Grade.PREDICTED, Grade.FAILED)


def health_rule(name: str, values: Mapping[str, str | int]) -> HealthRule:
    """The rule that these values say.

    Raises:
        HapteraError: they say none.
    """
    if pipeline.name not in values:
        raise HapteraError("it has no pipeline", do="set its pipeline", code=Code.MISSING)
    parsed = parse_pipeline(str(values[pipeline.name]))
    if sensors.name not in values and not isinstance(parsed.test, Fingerprint):
        raise HapteraError("it reads no sensor", do="set its sensors", code=Code.MISSING)
    given = values.get(grade.name)
    return HealthRule(
        name,
        str(values.get(sensors.name, "")),
        parsed,
        _grade(parsed) if given is None else Grade(str(given)),
        Mode(str(values.get(mode.name, Mode.SUGGEST))),
        str(values.get(origin.name, "")),
        None if precision.name not in values else int(values[precision.name]),
    )


def _grade(parsed: Pipeline) -> Grade:
    return Grade.PREDICTED if isinstance(parsed.test, Trend) else Grade.DEGRADED


def _check_whole(values: Mapping[str, str | int]) -> None:
    health_rule("", values)


# A pattern of names, as `temp.*`.
sensors = Plain("health-rule", "sensors", str, 64)
pipeline = Plain("health-rule", "pipeline", str, PIPELINE_BYTES_MAX, parse_pipeline)
# Without it, `predicted` for a trend, and else `degraded`.
grade = Plain("health-rule", "grade", str, 16, one_of(GRADES))
# Without it, `suggest`.
mode = Plain("health-rule", "mode", str, 8, one_of(Mode))
# In percent; below it, a rule that acts only suggests.
precision = Plain("health-rule", "precision", int, 8, between(1, 100))
# The source of its limits.
origin = Plain("health-rule", "origin", str, 160)

kind = Kind(
    "health-rule",
    (),
    plain=(sensors, pipeline, grade, mode, precision, origin),
    of_cluster=True,
    count_max=1_000,
    whole=_check_whole,
)
