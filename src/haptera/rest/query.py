"""The queries of requests, each a struct: the names that one may have, and the form of each."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from haptera.model.answers.plan import DIGEST_DIGITS
from haptera.model.walltime import WALL_S_MAX
from haptera.queue.job import JobState

# Characters of the reason that is given for a change.
WHY_CHARS_MAX: Final = 500
# Changes or happenings that one answer holds, unless the query has a number.
LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 10_000
# How long an answer waits for the end of a job.
WAIT_S_MAX: Final = 30
# Troubles of nodes are counted over so many days; what happened is kept for two more.
LEMON_DAYS: Final = 28
LAST_S_DEFAULT: Final = 3_600
LAST_S_MAX: Final = 400 * 86_400
STEP_S_MAX: Final = 86_400
# The most entities that are put in order by a number.
RANKED_MAX: Final = 1_000

Flag = Literal["0", "1"] | None


Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
WallS = Annotated[int, Meta(ge=0, le=WALL_S_MAX)]
WaitS = Annotated[int, Meta(ge=0, le=WAIT_S_MAX)]
Reason = Annotated[str, Meta(max_length=WHY_CHARS_MAX)]
PlanDigest = Annotated[str, Meta(pattern=f"^[0-9a-f]{{{DIGEST_DIGITS}}}$")]


def _says(text: str, example: str | None = None) -> Meta:
    return Meta(description=text, examples=None if example is None else [example])


Limit = Annotated[int, Meta(ge=1, le=LIMIT_MAX), _says("At most this many.")]
Take = Annotated[Flag, _says("1: take over values of other owners.")]
Select = Annotated[str | None, _says("Only what this selector matches; default: *.")]


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A query without names; one that is left out is None."""


class SelectQuery(Query, frozen=True, kw_only=True):
    select: Select = None


class ListQuery(SelectQuery, frozen=True, kw_only=True):
    kind: Annotated[str | None, _says("Only entities of this kind.")] = None
    nodes: Annotated[str | None, _says("Only entities on this node-set.")] = None


class DetailQuery(Query, frozen=True, kw_only=True):
    agent: Annotated[Flag, _says("1: add the view of its node's agent; takes up to 2 s.")] = None
    explain: Annotated[
        Flag, _says("1: add the reasons for its chain, or the goals that can be reached instead.")
    ] = None


class AfterQuery(Query, frozen=True, kw_only=True):
    after: Annotated[str | None, _says("Continue from `after` of an earlier answer.")] = None


class WhyQuery(Query, frozen=True, kw_only=True):
    why: Annotated[Reason | None, _says("The reason, for the history.")] = None


class TakeQuery(WhyQuery, frozen=True, kw_only=True):
    take: Take = None


class RevertQuery(WhyQuery, frozen=True, kw_only=True):
    dry_run: Annotated[Flag, _says("1: return what would change, and change nothing.")] = None
    digest: Annotated[
        PlanDigest | None,
        _says("The digest of the plan: it is applied only if the plan is unchanged."),
    ] = None


class ApplyQuery(RevertQuery, frozen=True, kw_only=True):
    take: Take = None


class OwnerQuery(Query, frozen=True, kw_only=True):
    owner: Annotated[
        str | None, _says("Only values of this owner: site, user:NAME, controller:NAME.")
    ] = None


class ThawQuery(WhyQuery, frozen=True, kw_only=True):
    selector: Annotated[str, _says("What to thaw.", "n1")]


class LimitQuery(Query, frozen=True, kw_only=True):
    limit: Limit = LIMIT_DEFAULT


class LatestQuery(SelectQuery, frozen=True, kw_only=True):
    limit: Limit = LIMIT_DEFAULT


class PageQuery(LatestQuery, frozen=True, kw_only=True):
    before: Annotated[Positive | None, _says("Continue from `before` of an earlier answer.")] = None


class TimeQuery(SelectQuery, frozen=True, kw_only=True):
    at: Annotated[WallS, _says("The time, in seconds since 1970.", "5")]


class LemonsQuery(SelectQuery, frozen=True, kw_only=True):
    days: Annotated[
        Annotated[int, Meta(ge=1, le=LEMON_DAYS)],
        _says(f"Count those of so many days; default: {LEMON_DAYS}."),
    ] = LEMON_DAYS


class EventsQuery(SelectQuery, frozen=True, kw_only=True):
    types: Annotated[str | None, _says("Only changes of these types, separated by commas.")] = None
    kinds: Annotated[str | None, _says("Only entities of these kinds, separated by commas.")] = None


class ReplicaQuery(Query, frozen=True, kw_only=True):
    follower: Annotated[
        Literal["standby", "below"], _says("Who follows: a standby, or a parent below.", "below")
    ] = msgspec.field(name="as")
    log: Annotated[Natural, _says("The log of the last answer.")] = 0
    place: Annotated[Natural, _says("How far of that log is held.")] = 0
    files: Annotated[str, _says("The digest of the files that are held.")] = ""


class SamplesQuery(SelectQuery, frozen=True, kw_only=True):
    series: Annotated[
        str | None, _says("Only this series, as temp.inlet or disk.used[/scratch].")
    ] = None
    highest: Annotated[
        Annotated[int, Meta(ge=1, le=RANKED_MAX)] | None,
        _says("Only so many entities: those with the highest numbers of the series, in order."),
    ] = None
    lowest: Annotated[
        Annotated[int, Meta(ge=1, le=RANKED_MAX)] | None,
        _says("Only so many entities: those with the lowest numbers of the series, in order."),
    ] = None


class SeriesQuery(Query, frozen=True, kw_only=True):
    series: Annotated[str, _says("The series, as temp.inlet or disk.used[/scratch].", "temp.inlet")]
    last_s: Annotated[
        Annotated[int, Meta(ge=1, le=LAST_S_MAX)],
        _says(f"How far back to begin, in seconds; default: {LAST_S_DEFAULT}."),
    ] = LAST_S_DEFAULT
    until: Annotated[
        Annotated[int, Meta(ge=1, le=WALL_S_MAX)] | None,
        _says("The end, in seconds since 1970; default: now."),
    ] = None
    step_s: Annotated[
        Annotated[int, Meta(ge=1, le=STEP_S_MAX)] | None,
        _says("One point for each step of so many seconds; default: each number as it came."),
    ] = None


class JobsQuery(LatestQuery, frozen=True, kw_only=True):
    state: Annotated[JobState | None, _says("Only jobs in this state.")] = None
    first: Annotated[Positive, _says("Only jobs from this number on.")] = 1
    since: Annotated[
        str | None, _says("Those that changed after an earlier answer's `turn`, in that order.")
    ] = None
    wait_s: Annotated[
        WaitS,
        _says("With `since`: answer once one has changed, or after so many seconds."),
    ] = 0


class WaitQuery(Query, frozen=True, kw_only=True):
    wait_s: Annotated[
        WaitS,
        _says("Answer when the job has ended, or after this many seconds."),
    ] = 0


class CancelQuery(WhyQuery, frozen=True, kw_only=True):
    select: Annotated[str, _says("The jobs: job:[1-20], job:* and state=queued.", "job:1")]


class QueueQuery(Query, frozen=True, kw_only=True):
    select: Annotated[
        str | None,
        _says("These nodes alone, whether or not they take jobs: rack1n[1-4].", "n9"),
    ] = None
