"""The course of a roll as a picture: a line for each system, its phases as bars along the time."""

from collections.abc import Mapping
from typing import Final

from haptera.cli.output.drawing.lanes import Bar, LaneChart, lanes_picture, lasting
from haptera.controllers.roll.timeline import RollPhase, RollSpan, RollTimeline
from haptera.model.walltime import utc_text_s

# Of Okabe and Ito's palette, which people see apart whatever colours they see.
_COLOURS: Final[Mapping[str, str]] = {
    RollPhase.STAGING: "#56b4e9",
    RollPhase.READY: "#d9e4ec",
    RollPhase.WAITING: "#f0e442",
    RollPhase.CHANGING: "#e69f00",
    RollPhase.NEW: "#009e73",
    RollPhase.REFUSED: "#d55e00",
    RollPhase.BACK: "#cc79a7",
    RollPhase.SILENT: "#bbbbbb",
}
# Where a reason is of interest.
_SAYS_WHY: Final = (RollPhase.WAITING, RollPhase.REFUSED)


def roll_picture(told: RollTimeline) -> str:
    """A roll as SVG."""
    lasts = lasting(told.to_s - told.from_s)
    title = f"roll {told.name} to {told.image}: {utc_text_s(int(told.from_s))}, {lasts}"
    lanes = [(lane.entity, [*map(_bar, lane.spans)]) for lane in told.lanes]
    marks = [(one.at_s, one.text) for one in told.marks]
    return lanes_picture(LaneChart(title, told.from_s, told.to_s, lanes, _COLOURS, marks))


def _bar(span: RollSpan) -> Bar:
    why = "" if span.why is None else f": {span.why}"
    words = f"{span.phase} for {lasting(span.to_s - span.from_s)}{why}"
    label = span.why if span.why is not None and span.phase in _SAYS_WHY else ""
    return Bar(span.phase, span.from_s, span.to_s, words, label)
