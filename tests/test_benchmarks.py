"""Benchmarks are run by hand: that each can still be started is seen here."""

import importlib
from pathlib import Path

import pytest

PROGRAMS = sorted(
    path.stem
    for path in (Path(__file__).parents[1] / "benchmarks").glob("*.py")
    if path.stem != "__init__"
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_finds_all_that_it_uses(name):
    assert importlib.import_module(f"benchmarks.{name}").__doc__
