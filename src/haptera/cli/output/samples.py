"""Numbers that machines report, for people: a line of blocks, and tables."""

from collections.abc import Sequence
from typing import Final

from haptera.cli.output.printing import say
from haptera.cli.output.tables import print_table
from haptera.model.samples import Point, downsampled, whole
from haptera.model.walltime import span, utc_text_s
from haptera.rest.samples import EntitySamples, SampleView, SeriesView

BLOCKS: Final = "▁▂▃▄▅▆▇█"
# A gap: nothing was measured then.
GAP: Final = " "
# How many blocks one line has, and how many rows a table.
BLOCKS_MAX: Final = 60
ROWS_MAX: Final = 12


def print_series(view: SeriesView, output: str, *, none: str) -> None:
    """A series: what it was in all, as a line of blocks, and as a table."""
    if not view.points:
        say(none, err=True)
        return
    every = whole(view.points)
    lasts = span(int((view.until_s - view.since_s) * 1_000))
    last = view.points[-1].mean
    figures = (("last", last), ("lowest", every.low), ("mean", every.mean), ("highest", every.high))
    said = ", ".join(f"{name} {number_text(value, view.unit)}" for name, value in figures)
    say(f"{view.series} of {view.entity} in {lasts}: {said}")
    say(sparkline(view))
    step_s = max(view.step_s or 1, round((view.until_s - view.since_s) / ROWS_MAX))
    rows = [
        (
            utc_text_s(int(one.at)),
            *(number_text(value, view.unit) for value in (one.low, one.mean, one.high)),
        )
        for one in downsampled(view.points, step_s)
    ]
    print_table(("FROM", "LOWEST", "MEAN", "HIGHEST"), rows, output)


def print_last(found: Sequence[EntitySamples], series: str, output: str, *, none: str) -> None:
    """The last number of one series of many, the highest first."""
    some = [(one.entity, one.series[series]) for one in found if series in one.series]
    some.sort(key=lambda one: (-one[1].value, one[0]))
    rows = [(entity, *_last(view)) for entity, view in some]
    print_table(("ENTITY", series.upper(), "AGE"), rows, output, none=none)


def print_all_last(one: EntitySamples, output: str) -> None:
    """The last number of all series of one entity."""
    rows = [(name, *_last(view)) for name, view in sorted(one.series.items())]
    print_table(("SERIES", "LAST", "AGE"), rows, output)


def sparkline(view: SeriesView) -> str:
    """The means of a series as blocks, from its lowest to its highest; gaps where nothing was."""
    lasts_s = max(1.0, view.until_s - view.since_s)
    slots: list[list[Point]] = [[] for _ in range(BLOCKS_MAX)]
    for one in view.points:
        place = int((one.at - view.since_s) / lasts_s * BLOCKS_MAX)
        slots[min(max(place, 0), BLOCKS_MAX - 1)].append(one)
    means = [sum(one.mean for one in some) / len(some) if some else None for some in slots]
    known = [mean for mean in means if mean is not None]
    low, high = min(known), max(known)
    return "".join(GAP if mean is None else _block(mean, low, high) for mean in means).rstrip()


def number_text(value: float, unit: str) -> str:
    """A number as people write it.

    >>> number_text(21.4567, "°C"), number_text(3e9, "bytes"), number_text(0.0, "")
    ('21.5 °C', '3.00G bytes', '0')
    """
    size, sign = abs(value), "-" if value < 0 else ""
    for power, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if size >= power:
            text = f"{sign}{size / power:.2f}{letter}"
            break
    else:
        text = f"{sign}{size:.3g}" if size < 100 else f"{sign}{size:.0f}"
    return f"{text} {unit}".rstrip()


def _last(view: SampleView) -> tuple[str, str]:
    return number_text(view.value, view.unit), span(view.age_ms)


def _block(mean: float, low: float, high: float) -> str:
    share = 0.5 if high == low else (mean - low) / (high - low)
    return BLOCKS[min(int(share * len(BLOCKS)), len(BLOCKS) - 1)]
