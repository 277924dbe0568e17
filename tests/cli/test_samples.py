"""Numbers for people: a line of blocks, tables, and what is said where there are none."""

import pytest

from haptera.cli.output.samples import (
    BLOCKS_MAX,
    number_text,
    print_all_last,
    print_last,
    print_series,
    sparkline,
)
from haptera.model.samples import Point
from haptera.rest.samples import EntitySamples, SampleView, SeriesView


def series(*values: tuple[float, float]) -> SeriesView:
    """So much at each time of the last hour."""
    points = [Point(at, value - 1, value, value + 1, 2) for at, value in values]
    return SeriesView("node:n1", "temp.inlet", "°C", 0.0, 3600.0, 60, points)


def test_a_ramp_is_a_line_that_climbs() -> None:
    line = sparkline(series(*((at * 60.0, float(at)) for at in range(60))))

    assert len(line) == BLOCKS_MAX
    assert sorted(line) == list(line)
    assert set(line) == set("▁▂▃▄▅▆▇█")


def test_what_was_not_measured_is_a_gap_and_a_constant_is_in_the_middle() -> None:
    assert sparkline(series((0.0, 5.0), (180.0, 5.0))) == "▅  ▅"


def test_a_series_is_told_in_all_and_in_parts(capsys: pytest.CaptureFixture[str]) -> None:
    print_series(series((0.0, 20.0), (3540.0, 30.0)), "table", none="nothing")
    out = capsys.readouterr().out.splitlines()

    assert out[0] == (
        "temp.inlet of node:n1 in 1 h: last 30 °C, lowest 19 °C, mean 25 °C, highest 31 °C"
    )
    assert out[2].split() == ["FROM", "LOWEST", "MEAN", "HIGHEST"]
    assert [line.split()[-2] for line in out[3:]] == ["21", "31"]


def test_where_nothing_was_measured_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    print_series(series(), "table", none="nothing was measured")
    print_last([], "temp.inlet", "table", none="no temp.inlet")
    caught = capsys.readouterr()

    assert (caught.out, caught.err) == ("", "nothing was measured\nno temp.inlet\n")


def test_of_many_the_highest_is_first(capsys: pytest.CaptureFixture[str]) -> None:
    some = [
        EntitySamples(f"node:n{number}", {"temp.inlet": SampleView(value, "°C", 3_000)})
        for number, value in enumerate((20.0, 35.5, 28.0))
    ]
    print_last([*some, EntitySamples("node:n9", {})], "temp.inlet", "table", none="")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]

    assert [row[0] for row in rows] == ["node:n1", "node:n2", "node:n0"]


def test_all_series_of_one_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    view = SampleView(3e9, "bytes", 1_000)
    print_all_last(EntitySamples("node:n1", {"disk.used[/]": view}), "wide")

    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["disk.used[/]", "3.00G", "bytes"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.125, "0.125"), (-3e6, "-3.00M"), (12345.0, "12345"), (1e15, "1.00P"), (999.9, "1000")],
)
def test_a_number_is_as_long_as_people_need_it(value: float, text: str) -> None:
    assert number_text(value, "") == text
