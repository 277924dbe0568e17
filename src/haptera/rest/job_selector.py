"""Selectors of jobs: `job:[1-20]`, `job:*@n3`, `job:* and state=queued and owner="user:eve"`.

A job is no entity: it is named by its number, is on the node that has it or had it last, and has
data of its own.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from haptera.model.declared.desired_check import nearest
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError, ParseError
from haptera.queue.job import Job, JobState
from haptera.selectors.names import GroupName
from haptera.selectors.selector import Selector, parse_selector
from haptera.selectors.selector_ast import (
    Age,
    Amount,
    Comparison,
    Datum,
    Pattern,
    StateLayer,
    parts_of,
)
from haptera.selectors.text_cursor import place

JOB: Final = "job"
_MS_PER_S: Final = 1_000

_DATA: Final[Mapping[str, Callable[[Job], object]]] = {
    "state": lambda job: job.state.value,
    "name": lambda job: job.name,
    "owner": lambda job: job.owner,
    "priority": lambda job: job.priority,
    "cpus": lambda job: job.spec.size.cpus,
    "memory_mb": lambda job: job.spec.size.memory_mb,
    "retry": lambda job: job.spec.retry.value,
    "backend": lambda job: job.spec.backend,
    "user": lambda job: job.spec.user,
    "image": lambda job: job.spec.image,
    "array": lambda job: job.array,
    "index": lambda job: job.index,
    "status": lambda job: job.status,
}
_TIMES: Final[Mapping[str, Callable[[Job], float | None]]] = {
    "submitted": lambda job: job.submitted_s,
    "began": lambda job: job.began_s,
    "ended": lambda job: job.ended_s,
}


@dataclass(frozen=True, slots=True)
class JobSubject:
    """A job as a selector sees it; what is not set is the empty text, and has no age."""

    job: Job
    now_s: float

    @property
    def id(self) -> EntityId:
        return EntityId(JOB, str(self.job.id), self.job.holder)

    def value(self, datum: Datum) -> str | None:
        found = _DATA[datum.name](self.job)
        return "" if found is None else str(found)

    def age_ms(self, datum: Datum) -> int | None:
        at_s = _TIMES[datum.name](self.job)
        return None if at_s is None else int((self.now_s - at_s) * _MS_PER_S)

    def measured(self, _series: str) -> float | None:
        return None

    def groups(self, _group: GroupName) -> Collection[str]:
        return ()


def is_of_jobs(text: str) -> bool:
    """Whether a selector is about jobs.

    >>> is_of_jobs("job:7"), is_of_jobs("job:* and state=queued"), is_of_jobs("jobs=none")
    (True, True, False)

    Raises:
        HapteraError: the text is no selector.
    """
    parts = parts_of(parse_selector(text).choice)
    return any(isinstance(one, Pattern) and one.kind == JOB for one in parts)


def parse_job_selector(text: str) -> Selector:
    """Read a selector of jobs, unless it names what no job has.

    >>> late = parse_job_selector("job:[1-9]@n* and state=running and age(began)>1h")
    >>> late.nodes()

    Raises:
        HapteraError: it does, or is none.
    """
    selector = parse_selector(text)
    for part in parts_of(selector.choice):
        match part:
            case Pattern():
                _check_pattern(text, part)
            case Comparison(datum, values):
                _check_datum(text, datum, _DATA)
                if unknown := sorted(set(values) - set(JobState)) if datum.name == "state" else ():
                    what = f"the state of a job cannot be {unknown[0]!r}"
                    raise _error(text, what, nearest(unknown[0], JobState), datum.at)
            case Age(datum):
                _check_datum(text, datum, _TIMES)
            case Amount(series, at=at):
                raise _error(text, f"no job has a number {series!r}", "ask for nodes by it", at)
    return selector


def _check_pattern(text: str, part: Pattern) -> None:
    if part.kind not in (None, JOB):
        do = "ask for jobs by themselves: job:* and state=queued"
        raise _error(text, f"a {part.kind} is no job", do, part.at)
    if part.groups:
        what = f"the group {part.groups[0]} cannot be used for jobs"
        raise _error(text, what, "name the nodes: job:*@n[1-4]", part.at)


def _check_datum(text: str, datum: Datum, names: Collection[str]) -> None:
    if datum.kind in (None, JOB) and datum.layer is StateLayer.KNOWN and datum.name in names:
        return
    what = f"no job has {'an age of' if names is _TIMES else 'a'} {str(datum)!r}"
    raise _error(text, what, nearest(datum.name, names), datum.at)


def _error(text: str, what: str, do: str, at: int) -> HapteraError:
    return ParseError(what, where=place("selector", text, at), do=do)
