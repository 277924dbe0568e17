"""Benchmarks are run by hand: that each can still be started is seen here."""

import importlib
from pathlib import Path

import pytest

from benchmarks.short import FORMS, NOT_SHORT

PROGRAMS = sorted(
    path.stem
    for path in (Path(__file__).parents[1] / "benchmarks").glob("*.py")
    if path.stem != "__init__"
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_finds_all_that_it_uses(name):
    assert importlib.import_module(f"benchmarks.{name}").__doc__


def test_each_is_run_at_night_in_its_short_form_or_left_out_on_purpose():
    assert sorted([*FORMS, *NOT_SHORT]) == PROGRAMS
