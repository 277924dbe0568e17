"""Jobs and those who take them, as people read them."""

from collections.abc import Sequence
from typing import Final

import click

from haptera.cli.output.printing import Format, print_data
from haptera.cli.output.tables import print_sentence, print_table
from haptera.model.walltime import utc_text_s
from haptera.queue.duty import DutyState
from haptera.queue.job import JobState
from haptera.rest.jobs import HolderView, JobView

# The most that are reported one by one.
TOLD_MAX: Final = 20
COLOURS: Final = {
    JobState.RUNNING: "cyan",
    JobState.COMPLETE: "green",
    JobState.FAILED: "red",
    JobState.CANCELLED: "yellow",
}

_HEADERS: Final = ("JOB", "STATE", "NAME", "PRIO", "CPUS", "MB", "NODE", "WHY")


def print_jobs(jobs: Sequence[JobView], output: str, *, none: str) -> None:
    """Write jobs for people, each with what it waits for."""
    colours = [COLOURS.get(one.state) for one in jobs]
    print_table(_HEADERS, [_row(one) for one in jobs], output, colours, none=none)


def sentence(job: JobView) -> str:
    """A job in one line.

    >>> from haptera.queue.job import Size
    >>> from haptera.rest.jobs import SpecView
    >>> one = SpecView(Size(1, 0), ("true",))
    >>> sentence(JobView(7, "sum", "user:eve", one, 0, JobState.QUEUED, "it waits", 0))
    'job:7 sum is queued: it waits'
    """
    return f"job:{job.id} {job.name} is {job.state}: {job.why}"


def _row(job: JobView) -> tuple[str, ...]:
    size = job.spec.size
    return (
        f"job:{job.id}",
        job.state.value,
        job.name if job.index is None else f"{job.name}[{job.index}]",
        str(job.priority),
        str(size.cpus),
        str(size.memory_mb),
        job.holder or "-",
        job.why,
    )


def print_holders(views: Sequence[HolderView], asked: Sequence[str], output: str) -> None:
    """Write where holders stand; for programs one by itself, where it alone was asked for."""
    if not Format(output).for_people:
        alone = [one.name for one in views] == [one.removeprefix("node:") for one in asked]
        print_data(views[0] if alone and len(views) == 1 else views, output)
        return
    for view in views[:TOLD_MAX]:
        print_sentence(holder_sentence(view), output)
    if len(views) > TOLD_MAX:
        more = len(views) - TOLD_MAX
        print_sentence(f"and {more} more: {len(views)} nodes in all", output)


def holder_sentence(view: HolderView) -> str:
    """Where a holder stands, with what it does.

    >>> from haptera.queue.duty import DutyState
    >>> from haptera.queue.job import Size
    >>> size = Size(4, 8192)
    >>> holder_sentence(HolderView("n1", DutyState.DRAINING, size, size, [7], reason="new disk"))
    'n1 is draining: job:7 is there still: new disk'
    >>> why = "it does not request work"
    >>> holder_sentence(HolderView("n1", DutyState.ABSENT, size, size, [], reason=why))
    'n1 may take jobs again, but it does not request work'
    """
    if view.duty is DutyState.ABSENT and view.reason is not None:
        # Whether it is there at all, the queue does not know.
        return f"{view.name} may take jobs again, but {view.reason}"
    jobs = ", ".join(f"job:{key}" for key in view.jobs)
    there = f": {jobs} {'is' if len(view.jobs) == 1 else 'are'} there still" if jobs else ""
    why = "" if view.reason is None else f": {view.reason}"
    until = f", stopped at {utc_text_s(view.deadline_s)}" if jobs and view.deadline_s else ""
    return f"{view.name} is {view.duty}{there}{until}{why}"


def number_of(text: str) -> int:
    """The number of a job, written `7` or `job:7`.

    Raises:
        BadParameter: it is none.
    """
    name = text.removeprefix("job:")
    if not (name.isascii() and name.isdigit()):
        raise click.BadParameter(f"{text!r} is not a job: write job:7, or 7")
    return int(name)
