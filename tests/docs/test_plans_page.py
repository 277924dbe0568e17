"""The page on plans: its session is what a real parent answers, its limits are the code's."""

import re
from http import HTTPStatus
from pathlib import Path

from haptera.cli.input.plan_file import PLAN_BYTES_MAX
from haptera.model.answers.plan import RADIUS_PERCENT, UNASKED_MAX
from haptera.planner.contingent import FOLLOWED_MAX
from haptera.rest.endpoints import UNPLANNED

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/plans.md").read_text("utf-8")


def test_the_limits_are_those_of_the_code() -> None:
    assert f"Past {FOLLOWED_MAX} states of one group (`FOLLOWED_MAX`)" in PAGE
    assert f"More than {RADIUS_PERCENT} % of the nodes, and more than one," in PAGE
    assert UNASKED_MAX == 1
    assert f"of at most {PLAN_BYTES_MAX >> 20} MiB" in PAGE
    assert set(re.findall(r"\| (4\d\d)\b", PAGE)) == {
        str(one.value) for one in (UNPLANNED, HTTPStatus.PRECONDITION_FAILED)
    }
