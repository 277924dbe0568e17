"""What a selector on the command line means: entities as they are, or as they were, or jobs."""

import re
from collections.abc import Collection, Iterable
from typing import Final

import click

from haptera.client import Client, calls
from haptera.model.declared.desired_check import did_you_mean
from haptera.model.errors import Code, HapteraError
from haptera.model.walltime import parse_when
from haptera.rest.job_selector import is_of_jobs
from haptera.rest.jobs import JOBS_MAX, JobView
from haptera.rest.schemas import Entities, Past
from haptera.runtime import clock
from haptera.selectors.names import nearest_name
from haptera.selectors.nodeset import expand, fold
from haptera.selectors.selector import parse_selector
from haptera.selectors.selector_ast import NODE, Pattern

# Jobs by their numbers: 7, job:7, 7-9, [7-9,12].
_NUMBERS: Final = re.compile(r"(?:job:)?\[?([0-9]+(?:[,-][0-9]+)*)\]?")


def selected(client: Client, selector: str | None) -> Entities:
    """All entities, or those that a selector means; nodes named one by one must all be there.

    Raises:
        HapteraError: one is not, or nothing is meant: a check of what is not there must not pass.
    """
    if selector is None:
        return client.ask(calls.entities())
    answer = client.ask(calls.entities(selector))
    check_there(client, selector, {view.node for view in answer.entities})
    return answer


def selected_jobs(client: Client, selector: str) -> list[JobView]:
    """The latest jobs that a selector means, JOBS_MAX at most.

    Raises:
        HapteraError: nothing is meant, or one is named by its number that is not there.
    """
    named = selector.removeprefix("job:")
    if named.isascii() and named.isdigit():
        return [client.ask(calls.job(int(named)))]
    found = client.ask(calls.jobs(select=selector, limit=JOBS_MAX)).jobs
    if not found:
        what, do = f"there is no {selector}", "see which there are: haptera jobs"
        raise HapteraError(what, do=do, code=Code.SELECTS_NOTHING)
    return found


def job_selector(words: Iterable[str]) -> str:
    """One selector of all jobs that these words mean: numbers, ranges, or selectors of jobs.

    >>> job_selector(["7", "job:9", "11-20"]), job_selector(["job:* and name=sum", "7"])
    ('job:[7,9,11-20]', 'job:[7] or (job:* and name=sum)')

    Raises:
        BadParameter: one means no jobs.
    """
    numbers, others = list[str](), list[str]()
    for word in words:
        if (match := _NUMBERS.fullmatch(word)) is not None:
            numbers.append(match[1])
        elif is_of_jobs(word):
            others.append(f"({word})")
        else:
            do = "write 7, 7-9, job:[7-9], or a selector: 'job:* and name=sum'"
            raise click.BadParameter(f"{word!r} is not a job: {do}")
    named = [f"job:[{','.join(numbers)}]"] if numbers else []
    if not named and len(others) == 1:
        return others[0][1:-1]
    return " or ".join([*named, *others])


def check_there(client: Client, selector: str, on: Collection[str | None]) -> None:
    """See that what a selector means is there, where its entities are `on` these nodes.

    Raises:
        HapteraError: nothing is, or not each node that it names.
    """
    named = parse_selector(selector).choice
    nodes = named.on if isinstance(named, Pattern) and named.kind in (None, NODE) else None
    members = nodes.members() if nodes is not None and nodes.plain else ()
    if missing := [one.name for one in members if one.name not in on]:
        alike = client.ask(calls.status("node:*")).alike
        near = nearest_name(missing[0], (name for one in alike for name in expand(one.on)))
        raise HapteraError(
            f"no such node: {fold(missing)}",
            do=f"{did_you_mean(near)}see which there are: haptera get node",
            code=Code.SELECTS_NOTHING,
        )
    if not on:
        what = f"there is no {selector}" if isinstance(named, Pattern) else f"nothing is {selector}"
        raise HapteraError(what, do="see what there is: haptera status", code=Code.SELECTS_NOTHING)


def past(client: Client, selector: str | None, at: str) -> Past:
    """How what a selector means, or all, was at a time."""
    return client.ask(calls.past(parse_when(at, clock.wall_s()), selector))
