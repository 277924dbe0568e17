"""The tests excused are known, and for a while only."""

import datetime

from tests.gate.plugin import Measured, durations, excused, measured
from tests.gate.stages import ROOT


def test_no_test_is_excused_beyond_its_day():
    today = datetime.datetime.now(datetime.UTC).date()
    assert [one for one in excused() if one.until < today] == []


def test_what_is_excused_is_a_test():
    files = {one.name: ROOT / one.name.partition("::")[0] for one in excused()}
    assert {name for name, file in files.items() if not file.exists()} == set()


def test_a_row_of_excuses_has_a_test_a_cause_and_a_day(tmp_path):
    file = tmp_path / "unsteady.tsv"
    file.write_text("# a remark\ntests/a.py::one[x y]\tthe clock\t2026-12-01\n")
    (one,) = excused(file)
    assert (one.name, one.cause) == ("tests/a.py::one[x y]", "the clock")
    assert one.until == datetime.date(2026, 12, 1)


def test_durations_are_read_by_name(tmp_path):
    file = tmp_path / "durations.tsv"
    file.write_text("tests/a.py::one[x y]\t12\n")
    assert durations(file) == {"tests/a.py::one[x y]": 12.0}


def test_a_run_that_was_killed_leaves_what_it_had(tmp_path):
    assert measured(tmp_path / "never") == []
    file = tmp_path / "run.jsonl"
    file.write_text('{"name":"a","seconds":1.5,"outcome":"passed"}\n')
    assert measured(file) == [Measured("a", 1.5, "passed")]
