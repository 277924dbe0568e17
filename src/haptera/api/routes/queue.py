"""Routes of the queue of jobs: submitting, looking, cancelling, and which nodes take them."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend, JobDesk
from haptera.api.requests.body import as_json, read_body
from haptera.api.requests.endpoint import (
    Caller,
    Handler,
    author,
    read_query,
)
from haptera.api.requests.lines import Lines, document
from haptera.api.routes.job_list import Cancelling, JobList
from haptera.api.writes.nodes_meant import nodes_meant
from haptera.kinds.meaning import check_selector
from haptera.kinds.node import QUEUE, NodeWork, work
from haptera.model.entity import node_id
from haptera.model.errors import Code, HapteraError
from haptera.model.text import whole_number
from haptera.model.token_scope import Scope
from haptera.queue.capacity import capacity_of
from haptera.queue.demand import demand
from haptera.queue.duty import DutyState
from haptera.queue.entry import Holder, Submission
from haptera.queue.job import ENDED, Job, JobState, Size
from haptera.queue.reason import absence
from haptera.rest import endpoints, query
from haptera.rest.job_selector import JobSubject, parse_job_selector
from haptera.rest.jobs import (
    CancelledJobs,
    HolderView,
    JobsView,
    JobView,
    LaneView,
    PriorityBody,
    QueueView,
    SpecView,
    SubmitBody,
    SubmitSpec,
    Submitted,
)
from haptera.selectors.selector import parse_selector
from haptera.selectors.subscription import Cursor, parse_cursor


@dataclass(frozen=True, slots=True)
class JobRoutes:
    """`wall_s` is people's time, in seconds since 1970."""

    backend: Backend
    wall_s: Callable[[], float]

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.SUBMIT, self.submit)
        yield Handler(endpoints.JOBS, self.many)
        yield Handler(endpoints.CANCEL_JOBS, self.cancel_many)
        yield Handler(endpoints.JOB, self.one)
        yield Handler(endpoints.CANCEL_JOB, self.cancel)
        yield Handler(endpoints.PRIORITIZE, self.prioritize)
        yield Handler(endpoints.QUEUE, self.queue)

    @property
    def desk(self) -> JobDesk:
        return self.backend.jobs

    async def submit(self, request: Request, caller: Caller) -> Response:
        """Queue a job, or an array of them; it is durable once this is answered."""
        body = await read_body(request, SubmitBody)
        _check_scope(body.spec, caller)
        made = await self.desk.submit(
            Submission(
                owner=f"user:{caller.name}",
                name=body.name,
                spec=body.spec,
                priority=body.priority,
                count=body.count,
                key=body.key,
            )
        )
        return as_json(Submitted(made[0].id, made[-1].id), status=HTTPStatus.CREATED)

    async def many(self, request: Request, _caller: Caller) -> Response:
        """The jobs that wait, run, or have ended of late; the latest first, or what changed.

        After a restart of the parent, all have changed.
        """
        asked, epoch = read_query(request, query.JobsQuery), self.backend.bus.latest.epoch
        jobs = JobList(self.desk, self._meant(asked.select, asked.state), asked.limit)
        if asked.since is None:
            found = await jobs.latest(asked.first)
        else:
            seen = _cursor(asked.since)
            found = await jobs.changed(seen.number if seen.epoch == epoch else 0, asked.wait_s)
        counts = {one.value: count for one, count in self.desk.queue.counts.items() if count}
        views = (self._view(job, msgspec.UNSET) for job in found.jobs)
        around = JobsView(counts, str(Cursor(epoch, found.last)), found.others, [])
        return Lines(views, form=document(around))

    async def one(self, request: Request, _caller: Caller) -> Response:
        """One job, and why it is not done; with `wait_s`, once it has ended."""
        job = self._job(request)
        wait_s = read_query(request, query.WaitQuery).wait_s
        try:
            async with asyncio.timeout(wait_s):
                while wait_s and job.state not in ENDED:
                    await self.desk.change(self.desk.turn)
                    job = self._job(request)
        except TimeoutError:
            job = self._job(request)
        return as_json(self._view(job, job.spec.command))

    async def cancel(self, request: Request, caller: Caller) -> Response:
        """End a job, or have it never begin; of one that has ended nothing changes."""
        reason = _reason(request, caller)
        [job] = await self.desk.cancel([self._job_of(caller, request).id], reason)
        return as_json(self._view(job, job.spec.command))

    async def cancel_many(self, request: Request, caller: Caller) -> Response:
        """End all jobs that a selector means, or have them never begin.

        207: some were left, for they belong to others or are not there. A job that began meanwhile
        is cancelled if it is meant still.
        """
        asked = read_query(request, query.CancelQuery)
        select = parse_job_selector(asked.select)
        many = Cancelling(
            self.desk, self._meant(asked.select), lambda job: _may_change(caller, job)
        )
        await many.cancel(select, _reason(request, caller))
        around = CancelledJobs(
            many.cancelled.view(), many.ended.view(), many.forbidden.view(), many.missing.view(), []
        )
        some_left = around.forbidden.count or around.missing.count
        views = (self._view(job, msgspec.UNSET) for job in many.jobs)
        answer = Lines(views, form=document(around))
        answer.status_code = HTTPStatus.MULTI_STATUS if some_left else HTTPStatus.OK
        return answer

    async def prioritize(self, request: Request, caller: Caller) -> Response:
        """Give a job that waits another priority."""
        body = await read_body(request, PriorityBody)
        job = await self.desk.prioritize(self._job_of(caller, request).id, body.priority)
        return as_json(self._view(job, job.spec.command))

    async def queue(self, request: Request, _caller: Caller) -> Response:
        """Who takes jobs, what waits, and what there is too little of."""
        queue, asked = self.desk.queue, read_query(request, query.QueueQuery)
        names = sorted(queue.holders.keys() | queue.duties.keys())
        if asked.select is not None:
            select = check_selector(parse_selector(asked.select))
            names = await nodes_meant(self.backend.queries, select, queue.holders)
        lanes = sorted(queue.lanes.counts().items(), key=lambda one: (one[0].size, one[1]))
        view = QueueView(
            [self._holder(name) for name in names],
            [LaneView(lane.size, count, lane.backend, lane.image) for lane, count in lanes],
            demand(queue.lanes, queue.rooms(None)),
            dict(self.desk.pools),
        )
        return as_json(view)

    def _meant(self, select: str | None, state: JobState | None = None) -> Callable[[Job], bool]:
        """True where a query means a job."""
        if select is None:
            return lambda job: state in (None, job.state)
        choice, now_s = parse_job_selector(select).choice, self.wall_s()
        return lambda job: state in (None, job.state) and choice.means(JobSubject(job, now_s))

    def _job(self, request: Request) -> Job:
        return self.desk.queue.job(whole_number(request.path_params["job"]) or 0)

    def _job_of(self, caller: Caller, request: Request) -> Job:
        """The job that a request is to change: the caller's own, or anybody's for an admin."""
        job = self._job(request)
        if not _may_change(caller, job):
            what = f"job {job.id} belongs to {job.owner}"
            do = "ask them, or use a token of scope admin"
            raise HapteraError(what, where=f"job:{job.id}", do=do, code=Code.FORBIDDEN)
        return job

    def _view(self, job: Job, command: tuple[str, ...] | msgspec.UnsetType) -> JobView:
        return JobView(
            id=job.id,
            name=job.name,
            owner=job.owner,
            spec=SpecView(**(msgspec.structs.asdict(job.spec) | {"command": command})),
            priority=job.priority,
            state=job.state,
            why=self.desk.why(job),
            submitted_s=int(job.submitted_s),
            array=job.array,
            index=job.index,
            holder=job.holder,
            token=job.token,
            locks=job.locks,
            began_s=_whole(job.began_s),
            ended_s=_whole(job.ended_s),
            status=job.status,
        )

    def _declared(self, name: str) -> Size | None:
        """What a node has for jobs."""
        view = self.backend.queries.entity(node_id(name))
        return None if view is None else capacity_of(view.attributes)

    def _duty(self, name: str) -> DutyState:
        """Where a node stands; drained is one of another batch system once that says so, too."""
        state = self.desk.queue.duty(name)
        view = self.backend.queries.entity(node_id(name)) if state is DutyState.DRAINED else None
        seen = None if view is None else view.observed.get(work.name)
        still = seen is not None and seen.by != QUEUE and seen.value != NodeWork.DRAINED
        return DutyState.DRAINING if still else state

    def _holder(self, name: str) -> HolderView:
        queue = self.desk.queue
        holder, duty = queue.holders.get(name) or Holder(name), queue.duties.get(name)
        return HolderView(
            name,
            self._duty(name),
            holder.capacity,
            holder.free,
            sorted(holder.held.values()),
            holder.backend,
            absence(queue, name, self._declared(name)) if duty is None else duty.reason,
            None if duty is None else duty.who,
            None if duty is None else duty.deadline_s,
            _whole(holder.idle_since_s),
            holder.limits,
            None if holder.images is None else sorted(holder.images),
        )


def _check_scope(spec: SubmitSpec, caller: Caller) -> None:
    """See that the caller may run a job as a user of its choice, or open what lies on a node.

    Raises:
        HapteraError: it may not.
    """
    if spec.reaches_node and not (caller.scope or Scope.READ).includes(Scope.EXEC):
        field = "mounts and devices" if spec.user is None else "user"
        what = f"a token for {caller.scope} cannot choose the {field} of a job: that needs exec"
        do = f"omit the {field}, or use a token of scope {Scope.EXEC}"
        raise HapteraError(what, where=field.split(" ")[0], do=do, code=Code.FORBIDDEN)


def _reason(request: Request, caller: Caller) -> str:
    """The reason for which a job is cancelled, for its submitter."""
    by = author(request, caller)
    return f"by {by.who}" if by.why is None else f"by {by.who}: {by.why}"


def _may_change(caller: Caller, job: Job) -> bool:
    return job.owner == f"user:{caller.name}" or caller.scope is Scope.ADMIN


def _cursor(text: str) -> Cursor:
    cursor = parse_cursor(text)
    if cursor is None:
        do = "send the turn of an earlier answer, or nothing"
        raise HapteraError(f"since={text!r}", where="the query", do=do)
    return cursor


def _whole(at_s: float | None) -> int | None:
    return None if at_s is None else int(at_s)
