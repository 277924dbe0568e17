"""Benchmarks are run by hand: that each can still be started is seen here."""

import importlib
from pathlib import Path

import pytest

from benchmarks import planning
from benchmarks.explicit_graph import ExplicitGraph
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


def test_the_graph_beside_the_planner_grows_as_that_of_the_paper():
    graph = ExplicitGraph(planning.independent(4).problem)
    # 3 ** 4 states; in each, a variable has two outcomes if unknown, one step if known.
    assert (len(graph.states), graph.edges) == (81, 432)
    # The first k are `b`, the next is unknown or `a`.
    assert len(ExplicitGraph(planning.row(5).problem).states) == 2 * 5 + 1
