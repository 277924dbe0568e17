"""Results of a rehearsal, for people."""

from collections.abc import Iterator
from typing import Final

from haptera.cli.output.printing import say
from haptera.cli.output.words import printable
from haptera.model.walltime import duration
from haptera.rehearsal.comparing import ComparedRehearsals
from haptera.rehearsal.finding import SearchedHistories
from haptera.rehearsal.rehearse import Span
from haptera.rehearsal.summary import RehearsalSummary, Spread
from haptera.rehearsal.truth import ComparedRoll

# The most rows shown of what waits and of what is left.
SHOWN_MAX: Final = 5


def print_rehearsed(summary: RehearsalSummary) -> None:
    """Print a table of the runs, then what waits, what is left, and what to know of it."""
    runs = "once" if summary.runs == 1 else f"{summary.runs} times"
    say(f"rehearsed {runs} from revision {summary.revision}, seeds from {summary.first_seed}")
    if summary.settled < summary.runs:
        within = f"within {_time(summary.horizon_s)}"
        say(f"done {within} in {summary.settled} of {summary.runs} runs", fg="red")
    rows = [("", "median", "90 %", "most"), *_rows(summary)]
    width = max(len(row[0]) for row in rows)
    for row in rows:
        say("  ".join([row[0].ljust(width), *(cell.rjust(8) for cell in row[1:])]).rstrip())
    for text, colour in _remarks(summary):
        say(printable(text), fg=colour)


def print_compared(compared: ComparedRehearsals) -> None:
    """Print the medians of both, and the steps at which their first runs first differ."""
    pairs = zip(_rows(compared.one), _rows(compared.other), strict=False)
    rows = [("", "this", "--vs"), *((one[0], one[1], other[1]) for one, other in pairs)]
    width = max(len(row[0]) for row in rows)
    for name, one, other in rows:
        say(f"{name.ljust(width)}  {one:>8}  {other:>8}")
    if not compared.first:
        say("the same steps run in the same order")
    for difference in compared.first[:SHOWN_MAX]:
        text = f"{_step(difference.one)} | {_step(difference.other)}"
        say(printable(f"step {difference.number}: {text}"))


def print_compared_roll(compared: ComparedRoll) -> None:
    """Print each figure as it happened and as rehearsed, and how far the two are apart."""
    runs = "once" if compared.runs == 1 else f"{compared.runs} times"
    say(f"roll {compared.name}, begun by revision {compared.revision}; rehearsed {runs}")
    rows: list[tuple[str, ...]] = [("", "happened", "median", "least", "most", "off")]
    for one in compared.figures:
        show = _time if one.is_time else "{:g}".format
        spread = one.rehearsed
        told = (spread.median, spread.least, spread.most) if spread else (None, None, None)
        cells = ("-" if value is None else show(value) for value in (one.happened, *told))
        rows.append((one.name, *cells, "-" if one.off is None else f"{one.off:+.0%}"))
    width = max(len(row[0]) for row in rows)
    for row in rows:
        say("  ".join([row[0].ljust(width), *(cell.rjust(8) for cell in row[1:])]).rstrip())
    if compared.same_order is not None:
        say(f"in the same order: {compared.same_order:.0%} of pairs that followed each other")
    if compared.missing:
        say(f"not installed here, so left as it was: {', '.join(compared.missing)}", fg="yellow")


def _step(one: Span | None) -> str:
    if one is None:
        return "none"
    return f"{one.part} on {one.entity} after {_time(one.from_s)}{' failed' * one.failed}"


def print_searched(searched: SearchedHistories) -> None:
    """Print the smallest history that breaks a condition, and how to replay it."""
    found = searched.found
    if found is None:
        say(f"no condition was broken in {searched.tried} histories")
        return
    breach = found.breach
    say(f"found in history {searched.tried}:")
    text = f"broken after {_time(breach.at_s)}: {breach.invariant}: {breach.how}"
    say(printable(text), fg="red")
    for one in found.steps[-SHOWN_MAX:]:
        ended = "failed" if one.failed else "ended"
        times = f"{_time(one.from_s)} to {_time(one.to_s)}"
        say(printable(f"  {times}: {one.part} on {one.entity} {ended}"))
    faults = "".join(f" --fault '{one}'" for one in found.faults)
    say(printable(f"replay: the same with --runs 1 --seed {found.seed}{faults}"))


def _rows(summary: RehearsalSummary) -> Iterator[tuple[str, ...]]:
    if (settled := summary.settled_s) is None:
        yield "done after", "-", "-", "-"
    else:
        yield "done after", _time(settled.median), _time(settled.p90), _time(settled.most)
    for name, one in (
        ("steps", summary.steps),
        ("steps that failed", summary.failed),
        ("nodes disrupted", summary.disrupted_nodes),
        ("disrupted at once", summary.disrupted_at_once),
        ("refused by jobs", summary.refused_by_jobs),
    ):
        yield name, *_numbers(one)


def _remarks(summary: RehearsalSummary) -> Iterator[tuple[str, str | None]]:
    for one in summary.waits[:SHOWN_MAX]:
        yield f"waits, {_time(one.entity_s)} in all: {one.why}", None
    for left in summary.left[:SHOWN_MAX]:
        yield f"left in {left.runs} of {summary.runs} runs: {left.entity}: {left.why}", "yellow"
    for breach in summary.breaches:
        yield f"broken after {_time(breach.at_s)}: {breach.invariant}: {breach.how}", "red"
    if summary.restless:
        names = ", ".join([*summary.restless][:SHOWN_MAX])
        yield f"not as desired before the change: {names}", "yellow"
    if summary.unmeasured and not summary.assumed:
        yield f"never measured there, so assumed: {', '.join(summary.unmeasured)}", None
    if summary.assumed:
        yield "of a backup: what is desired is assumed to be so, and nothing was measured", "yellow"
    if summary.missing:
        yield f"not installed here, so left as it is: {', '.join(summary.missing)}", "yellow"


def _numbers(spread: Spread) -> tuple[str, str, str]:
    return f"{spread.median:g}", f"{spread.p90:g}", f"{spread.most:g}"


def _time(seconds: float) -> str:
    return duration(round(seconds * 1_000))
