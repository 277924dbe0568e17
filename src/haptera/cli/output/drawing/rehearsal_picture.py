"""One run of a rehearsal as a picture: a line for each node, its steps as bars along the time."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from haptera.cli.output.drawing.lanes import Bar, LaneChart, lanes_picture, lasting
from haptera.rehearsal.rehearse import RehearsalRun, Span

# Of more nodes, those whose first step begins earliest are drawn.
LANES_MAX: Final = 60
# A bar that ends with the picture is seen to end.
_AFTER: Final = 1.05


class StepSort(StrEnum):
    """How a step ends, and whether it may interrupt running work."""

    QUIET = "step"
    DISRUPTIVE = "disruptive step"
    FAILED = "failed step"


# Of the same palette as a roll.
_COLOURS: Final[Mapping[str, str]] = {
    StepSort.QUIET: "#56b4e9",
    StepSort.DISRUPTIVE: "#e69f00",
    StepSort.FAILED: "#d55e00",
}


def rehearsal_picture(run: RehearsalRun) -> str:
    """A run as SVG, in seconds since the change."""
    lanes: dict[str, list[Bar]] = {}
    for span in sorted(run.spans, key=lambda one: (one.from_s, one.entity)):
        lanes.setdefault(span.node or span.entity, []).append(_bar(span))
    shown = [*lanes.items()][:LANES_MAX]
    ends = [bar.to_s for _, bars in shown for bar in bars]
    ends += [one.at_s for one in run.breaches]
    to_s = max(ends, default=0.0) * _AFTER
    marks = [(one.at_s, f"broken: {one.invariant}: {one.how}") for one in run.breaches]
    return lanes_picture(LaneChart(_title(run, len(lanes)), 0.0, to_s, shown, _COLOURS, marks))


def _title(run: RehearsalRun, lanes: int) -> str:
    done = "not done" if run.settled_s is None else f"done after {lasting(run.settled_s)}"
    left_out = f", the first {LANES_MAX} of {lanes} nodes" if lanes > LANES_MAX else ""
    return f"rehearsal with seed {run.seed}: {done}{left_out}"


def _bar(span: Span) -> Bar:
    sort = StepSort.DISRUPTIVE if span.disruptive else StepSort.QUIET
    sort = StepSort.FAILED if span.failed else sort
    words = f"{span.part} on {span.entity} for {lasting(span.to_s - span.from_s)}"
    return Bar(sort, span.from_s, span.to_s, words, span.part)
