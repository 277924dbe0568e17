"""All calls of the API, each said once: a client of either sort sends them.

What is left out (None) is not sent. A `why` is kept in the history; with `take`, values are taken
over from those to whom they belong; with `dry_run`, nothing is changed; with a `digest`, it is
done only if that is the plan's.
"""

from collections.abc import Iterable, Mapping

import msgspec

from haptera.client.call import ApiCall, call
from haptera.client.node_calls import claim as claim
from haptera.client.node_calls import evict as evict
from haptera.client.node_calls import invite as invite
from haptera.client.node_calls import override as override
from haptera.client.node_calls import unclaimed as unclaimed
from haptera.kinds.inventory import Inventory
from haptera.model.answers.graph import DrawingView
from haptera.model.answers.past import Page
from haptera.model.answers.story import StoryView
from haptera.model.answers.views import BrakeView, EntityDetail, EntityView, TreeView
from haptera.model.news import News
from haptera.model.token_scope import Scope
from haptera.queue.job import JobState
from haptera.rest import endpoints
from haptera.rest.exec import WITHIN_S_DEFAULT, ExecBody, ExecView
from haptera.rest.jobs import (
    CancelledJobs,
    JobsView,
    JobView,
    PriorityBody,
    QueueView,
    SubmitBody,
    Submitted,
)
from haptera.rest.lemons import Lemons
from haptera.rest.rolls import RollBody, RollStarted
from haptera.rest.schemas import (
    AppliedView,
    Audit,
    Bulk,
    BulkBody,
    CallerView,
    CertificateBody,
    CertificateMade,
    Difference,
    Entities,
    EntityPatch,
    Event,
    Exported,
    FreezeBody,
    FreezeView,
    Frozen,
    Happenings,
    Health,
    LogView,
    Past,
    ReplicaView,
    ReportBody,
    ReportTaken,
    Retried,
    SiteBody,
    StatusView,
    SummaryView,
    Thawed,
    TokenBody,
    TokenMade,
    Tokens,
    TokenView,
)


def health() -> ApiCall[Health]:
    """That the parent runs, and its version; needs no token."""
    return call(endpoints.HEALTH)


def replica(follower: str, log: int, place: int, files: str) -> ApiCall[ReplicaView]:
    """What was written after a place in the store's log; the whole store where it is not known."""
    who = {"as": follower}  # a word of Python
    return call(endpoints.REPLICA, log=log, place=place, files=files, **who)


def report(content: bytes) -> ApiCall[ReportTaken]:
    """What a parent below keeps."""
    return call(endpoints.REPORT, body=ReportBody(content))


def summary() -> ApiCall[SummaryView]:
    """How many entities of each kind stand in each condition."""
    return call(endpoints.SUMMARY)


def parents() -> ApiCall[TreeView]:
    """The parents of the tree, with what each keeps, and the lag of the standby."""
    return call(endpoints.PARENTS)


def status(select: str | None = None) -> ApiCall[StatusView]:
    """The condition of all, or of what a selector means, with like ones grouped."""
    return call(endpoints.STATUS, select=select)


def entities(select: str | None = None, *, kind: str | None = None) -> ApiCall[Entities]:
    """All entities, or those that a selector means, or of a kind."""
    return call(endpoints.ENTITIES, select=select, kind=kind)


def entity(name: str) -> ApiCall[EntityView]:
    """One entity, as `node:n1` or `service:web@n1`."""
    return msgspec.structs.replace(call(endpoints.ENTITY, name), gives=EntityView)


def detail(name: str) -> ApiCall[EntityDetail]:
    """One entity, why its chain is as it is, and how its node's agent sees it: takes a moment."""
    return call(endpoints.ENTITY, name, agent=True, explain=True)


def graph(name: str) -> ApiCall[DrawingView]:
    """All that can be known of an entity's class and what leads where, its chain marked."""
    return call(endpoints.GRAPH, name)


def story(name: str) -> ApiCall[StoryView]:
    """The last decisions of the parent on an entity, oldest first."""
    return call(endpoints.STORY, name)


def inventory(image: str) -> ApiCall[Inventory]:
    """All files of an image, by its name or its digest, and its packages."""
    return call(endpoints.INVENTORY, image)


def log(name: str, *, after: str | None = None) -> ApiCall[LogView]:
    """The last lines that a module or a service has written, or those after a place."""
    return call(endpoints.LOG, name, after=after)


def desire(
    name: str,
    values: Mapping[str, str | int | None],
    *,
    take: bool = False,
    why: str | None = None,
    if_match: str | None = None,
) -> ApiCall[EntityView]:
    """Desire values of an entity, in one's own name; None desires nothing any more.

    With `if_match`, the tag of an earlier answer, only if nothing of it changed since.
    """
    return call(endpoints.DESIRE, name, body=dict(values), if_match=if_match, take=take, why=why)


def describe(
    name: str,
    attributes: Mapping[str, str | None],
    *,
    take: bool = False,
    why: str | None = None,
    if_match: str | None = None,
) -> ApiCall[EntityView]:
    """Give an entity attributes, `if_match` as of `desire`; None takes one away."""
    return call(
        endpoints.DESCRIBE, name, body=dict(attributes), if_match=if_match, take=take, why=why
    )


def patch(
    patches: Iterable[EntityPatch],
    *,
    all_or_nothing: bool = False,
    dry_run: bool = False,
    take: bool = False,
    digest: str | None = None,
    why: str | None = None,
) -> ApiCall[Bulk]:
    """Patch many entities in one write, each answered for by itself, or all or nothing."""
    body = BulkBody([*patches], all_or_nothing)
    return call(endpoints.BULK, body=body, dry_run=dry_run, take=take, digest=digest, why=why)


def retry(name: str, *, why: str | None = None) -> ApiCall[Retried]:
    """Try an entity again at once."""
    return call(endpoints.RETRY, name, why=why)


def apply(
    site: SiteBody,
    *,
    dry_run: bool = False,
    take: bool = False,
    digest: str | None = None,
    why: str | None = None,
) -> ApiCall[AppliedView]:
    """Make a site what the cluster should be."""
    return call(endpoints.APPLY, body=site, dry_run=dry_run, take=take, digest=digest, why=why)


def begin_roll(
    body: RollBody,
    *,
    dry_run: bool = False,
    take: bool = False,
    digest: str | None = None,
    why: str | None = None,
) -> ApiCall[RollStarted]:
    """Update systems to an image, a few at a time."""
    asked = {"digest": digest, "why": why}
    return call(endpoints.BEGIN_ROLL, body=body, dry_run=dry_run, take=take, **asked)


def diff(site: SiteBody) -> ApiCall[Difference]:
    """In what a site and what is in force differ."""
    return call(endpoints.DIFF, body=site)


def export(owner: str | None = None) -> ApiCall[Exported]:
    """What is in force as a site file, or what one owner has of it."""
    return call(endpoints.EXPORT, owner=owner)


def execute(
    entity: str, words: Iterable[str], *, stdin: bytes | None = None, within_s: int | None = None
) -> ApiCall[ExecView]:
    """Run a command on a node, or in a system, as `node:n1` or `system:login@n1`.

    Its outcome comes in lines: to be read with `lines`.
    """
    body = ExecBody([*words], stdin, WITHIN_S_DEFAULT if within_s is None else within_s)
    return call(endpoints.EXECUTE, entity, body=body)


def freezes() -> ApiCall[Frozen]:
    """All freezes."""
    return call(endpoints.FREEZES)


def freeze(
    selector: str, reason: str, *, for_s: int | None = None, even_if_none: bool = False
) -> ApiCall[FreezeView]:
    """Begin no step on what a selector names; without `for_s`, until somebody thaws it."""
    body = FreezeBody(selector, reason, for_s, even_if_none)
    return call(endpoints.FREEZE, body=body)


def thaw(selector: str, *, why: str | None = None) -> ApiCall[Thawed]:
    """Let go on what a selector names."""
    return call(endpoints.THAW, selector=selector, why=why)


def brake() -> ApiCall[BrakeView]:
    """Why the brake is on, and for how long."""
    return call(endpoints.BRAKE)


def release_brake(*, why: str | None = None) -> ApiCall[BrakeView]:
    """Let disruptive steps go on; the answer is how the brake stood before."""
    return call(endpoints.RELEASE_BRAKE, why=why)


def history(
    select: str | None = None, *, limit: int | None = None, before: int | None = None
) -> ApiCall[Page]:
    """What was changed of what is desired, latest first; `before` is an earlier page's."""
    return call(endpoints.HISTORY, select=select, limit=limit, before=before)


def happenings(select: str | None = None, *, limit: int | None = None) -> ApiCall[Happenings]:
    """What was seen, where it stood, what was tried, latest first."""
    return call(endpoints.HAPPENINGS, select=select, limit=limit)


def past(at_s: int, select: str | None = None) -> ApiCall[Past]:
    """How entities were at a time, in seconds since 1970."""
    return call(endpoints.PAST, at=at_s, select=select)


def lemons(select: str | None = None, *, days: int | None = None) -> ApiCall[Lemons]:
    """The nodes on which anything went wrong in the last days, with counts, the worst first."""
    return call(endpoints.LEMONS, select=select, days=days)


def audit(*, limit: int | None = None) -> ApiCall[Audit]:
    """What was asked for of all that changes anything, by whom, latest first."""
    return call(endpoints.AUDIT, limit=limit)


def revert(
    revision: int, *, dry_run: bool = False, digest: str | None = None, why: str | None = None
) -> ApiCall[AppliedView]:
    """Undo the write that made a revision."""
    return call(endpoints.REVERT, str(revision), dry_run=dry_run, digest=digest, why=why)


def caller() -> ApiCall[CallerView]:
    """Who asks, and what they may."""
    return call(endpoints.CALLER)


def tokens() -> ApiCall[Tokens]:
    """All tokens that hold."""
    return call(endpoints.TOKENS)


def make_token(
    name: str, scope: Scope, *, for_s: int, within: str | None = None
) -> ApiCall[TokenMade]:
    """Make a token for a user."""
    return call(endpoints.MAKE_TOKEN, body=TokenBody(name, scope, for_s, within))


def certify(body: CertificateBody) -> ApiCall[CertificateMade]:
    """Make a client certificate for the key of a request."""
    return call(endpoints.CERTIFY, body=body)


def revoke_token(key: str) -> ApiCall[TokenView]:
    """Take a token back, by its id."""
    return call(endpoints.REVOKE_TOKEN, key)


def events(
    select: str | None = None,
    *,
    types: Iterable[News] | None = None,
    kinds: Iterable[str] | None = None,
) -> ApiCall[Event]:
    """What changes, as it does: to be followed, not asked."""
    return call(endpoints.EVENTS, types=types, kinds=kinds, select=select)


def submit(body: SubmitBody) -> ApiCall[Submitted]:
    """Queue a job, or an array; with a key in it, it may be sent again."""
    return call(endpoints.SUBMIT, body=body)


def jobs(
    state: JobState | None = None,
    *,
    select: str | None = None,
    first: int | None = None,
    limit: int | None = None,
    since: str | None = None,
    wait_s: int | None = None,
) -> ApiCall[JobsView]:
    """The jobs that wait, run, or have ended of late; or what changed since an earlier answer."""
    which = {"select": select, "state": state, "since": since}
    return call(endpoints.JOBS, first=first, limit=limit, wait_s=wait_s, **which)


def job(key: int, *, wait_s: int | None = None) -> ApiCall[JobView]:
    """One job, and why it is not done; answered once it has ended, or after so many seconds."""
    return call(endpoints.JOB, str(key), wait_s=wait_s)


def cancel_job(key: int, *, why: str | None = None) -> ApiCall[JobView]:
    """End a job, or have it never begin."""
    return call(endpoints.CANCEL_JOB, str(key), why=why)


def cancel_jobs(select: str, *, why: str | None = None) -> ApiCall[CancelledJobs]:
    """End all jobs that a selector means, in one request."""
    return call(endpoints.CANCEL_JOBS, select=select, why=why)


def prioritize(key: int, priority: int) -> ApiCall[JobView]:
    """Give a job that waits another priority."""
    return call(endpoints.PRIORITIZE, str(key), body=PriorityBody(priority))


def queue(select: str | None = None) -> ApiCall[QueueView]:
    """The takers of jobs, or these nodes; the waiting jobs, and what there is too little of."""
    return call(endpoints.QUEUE, select=select)
