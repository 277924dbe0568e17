"""A change is held to what is always run, to what it touches, and to all the rest in turn."""

import tomllib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gate.selection import (
    UNMEASURED_S,
    Areas,
    Choice,
    chosen,
    cost,
    matches,
    only_pages,
    touched_areas,
)
from tests.gate.stages import AREAS, ROOT

TESTS = ("tests/a.py::one", "tests/a.py::two[x]", "tests/b.py::one", "tests/c/d.py::one[y-z]")
AREAS_READ = msgspec.convert(tomllib.loads(AREAS.read_text("utf-8")), Areas)

files = st.sampled_from(["tests/a.py", "tests/b.py", "tests/c/d.py", "tests/e.py"])
names = st.builds(lambda file, test: f"{file}::test_{test}", files, st.integers(0, 9))
collected = st.lists(names, unique=True)
measured = st.dictionaries(names, st.floats(0, 100))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tests/a.py", {"tests/a.py::one", "tests/a.py::two[x]"}),
        ("tests/a.py::two", {"tests/a.py::two[x]"}),
        ("tests/a.py::on", set()),
        ("tests/c", {"tests/c/d.py::one[y-z]"}),
        ("tests/c/d.py::one[y-z]", {"tests/c/d.py::one[y-z]"}),
    ],
)
def test_a_selector_names_a_folder_a_file_a_test_or_a_case(selector, expected):
    assert {name for name in TESTS if matches(name, [selector])} == expected


def test_what_is_always_run_is_run_though_nothing_else_has_its_turn():
    assert chosen(TESTS, Choice(always=("tests/b.py",)), {}) == {"tests/b.py::one"}


def test_of_what_is_touched_as_many_are_run_as_fit_the_cheapest_first():
    seconds = {"tests/a.py::one": 5.0, "tests/a.py::two[x]": 1.0, "tests/b.py::one": 1.0}
    choice = Choice(touched=("tests/a.py", "tests/b.py"), budget_s=6.0)
    assert chosen(TESTS, choice, seconds) == {"tests/a.py::two[x]", "tests/b.py::one"}


@given(collected, measured, st.integers(1, 7), st.integers(0, 1_000))
def test_as_many_turns_in_a_row_as_there_are_run_each_test_once(tests, seconds, turns, first):
    apart = ("tests/a.py",)
    runs = [
        chosen(tests, Choice(turn=turn, turns=turns, apart=apart), seconds)
        for turn in range(first, first + turns)
    ]
    assert sorted(name for run in runs for name in run) == sorted(tests)
    for file in {name.partition("::")[0] for name in tests} - {*apart}:
        together = {name for name in tests if name.startswith(file)}
        assert [run & together for run in runs if run & together] == [together]


@given(collected, measured, st.integers(1, 7))
def test_no_turn_lasts_longer_than_another_by_more_than_one_group(tests, seconds, turns):
    apart = ("tests/a.py", "tests/b.py", "tests/c/d.py", "tests/e.py")
    lasts = [
        sum(
            cost(name, seconds)
            for name in chosen(tests, Choice(turn=turn, turns=turns, apart=apart), seconds)
        )
        for turn in range(turns)
    ]
    longest = max((cost(name, seconds) for name in tests), default=0.0)
    assert max(lasts) - min(lasts) <= longest + 1e-6


def test_a_test_that_was_never_measured_counts_as_a_long_one():
    assert cost("tests/new.py::one", {"tests/a.py::one": 1.0}) == UNMEASURED_S


def test_a_change_touches_the_areas_of_its_sources_and_of_its_tests():
    changed = ["src/haptera/modules/redfish/client.py", "tests/modules/test_slurm.py", "docs/x.md"]
    assert touched_areas(AREAS_READ, changed) == ["power", "slurm"]
    assert not only_pages(AREAS_READ, changed)
    assert only_pages(AREAS_READ, ["docs/explain/tree.md", "news/1.x.added.md"])


def test_each_selector_of_the_table_names_a_test_and_each_source_is_there():
    selectors = [one for area in AREAS_READ.area.values() for one in (*area.always, *area.tests)]
    unknown = [one for one in (*selectors, *AREAS_READ.apart) if not names_a_test(one)]
    sources = [one for area in AREAS_READ.area.values() for one in area.source]
    nowhere = [one for one in sources if not list(ROOT.glob(f"{one}*"))]
    assert (unknown, nowhere) == ([], [])


def names_a_test(selector: str) -> bool:
    path, _, test = selector.partition("::")
    place = ROOT / path
    if not test:
        return place.exists()
    return f"def {test.partition('[')[0]}(" in place.read_text("utf-8")


def test_each_file_of_real_parts_belongs_to_an_area_or_has_its_turn_only():
    """What the table leaves out has its turn, and is named here on purpose."""
    marks = [f"mark.{one}" for one in ("campaign", "net")]
    real = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if all(mark in path.read_text("utf-8") for mark in marks)
    }
    listed = [one for area in AREAS_READ.area.values() for one in area.tests]
    assert {one for one in real if not belongs(one, listed)} == {
        "tests/cli/test_ansible_inventory.py",
        "tests/cli/test_creating.py",
        "tests/cli/test_hundred_nodes.py",
        "tests/testing/test_conformance.py",
    }


def belongs(file: str, listed: list[str]) -> bool:
    return any(file == one.partition("::")[0] or file.startswith(f"{one}/") for one in listed)
