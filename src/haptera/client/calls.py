"""All calls of the API, each said once: a client of either sort sends them.

What is left out (None) is not sent. A `why` is kept in the history; with `take`, values are taken
over from those to whom they belong; with `dry_run`, nothing is changed; with a `digest`, it is
done only if that is the plan's.
"""

from collections.abc import Iterable, Mapping

from haptera.client.call import ApiCall, if_match_header, path, query
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
from haptera.queue.duty import DutyState
from haptera.queue.job import JobState
from haptera.rest.exec import WITHIN_S_DEFAULT, ExecBody, ExecView
from haptera.rest.jobs import (
    CancelledJobs,
    DutyBody,
    HoldersView,
    HolderView,
    JobsView,
    JobView,
    PriorityBody,
    QueueView,
    SubmitBody,
    Submitted,
)
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
    return ApiCall("GET", path("health"), Health)


def replica(follower: str, log: int, place: int, files: str) -> ApiCall[ReplicaView]:
    """What was written after a place in the store's log; the whole store where it is not known."""
    asked = {"as": follower, "log": str(log), "place": str(place), "files": files}
    return ApiCall("GET", path("replica"), ReplicaView, asked)


def report(content: bytes) -> ApiCall[ReportTaken]:
    """What a parent below keeps."""
    return ApiCall("POST", path("reports"), ReportTaken, body=ReportBody(content))


def summary() -> ApiCall[SummaryView]:
    """How many entities of each kind stand in each condition."""
    return ApiCall("GET", path("summary"), SummaryView)


def parents() -> ApiCall[TreeView]:
    """The parents of the tree, with what each keeps, and the lag of the standby."""
    return ApiCall("GET", path("parents"), TreeView)


def status(select: str | None = None) -> ApiCall[StatusView]:
    """How all stand, or what a selector means: what stands alike is told together."""
    return ApiCall("GET", path("status"), StatusView, query(select=select))


def entities(select: str | None = None, *, kind: str | None = None) -> ApiCall[Entities]:
    """All entities, or those that a selector means, or of a kind."""
    return ApiCall("GET", path("entities"), Entities, query(select=select, kind=kind))


def entity(name: str) -> ApiCall[EntityView]:
    """One entity, as `node:n1` or `service:web@n1`."""
    return ApiCall("GET", path("entities", name), EntityView)


def detail(name: str) -> ApiCall[EntityDetail]:
    """One entity, why its chain is as it is, and how its node's agent sees it: takes a moment."""
    return ApiCall("GET", path("entities", name), EntityDetail, {"agent": "1", "explain": "1"})


def graph(name: str) -> ApiCall[DrawingView]:
    """All that can be known of an entity's class and what leads where, its chain marked."""
    return ApiCall("GET", path("entities", name, "graph"), DrawingView)


def story(name: str) -> ApiCall[StoryView]:
    """The last decisions of the parent on an entity, oldest first."""
    return ApiCall("GET", path("entities", name, "story"), StoryView)


def inventory(image: str) -> ApiCall[Inventory]:
    """All files of an image, by its name or its digest, and its packages."""
    return ApiCall("GET", path("images", image, "inventory"), Inventory)


def log(name: str, *, after: str | None = None) -> ApiCall[LogView]:
    """The last lines that a module or a service has written, or those after a place."""
    asked = {} if after is None else {"after": after}
    return ApiCall("GET", path("entities", name, "log"), LogView, asked)


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
    where, asked = path("entities", name, "desired"), query(take=take, why=why)
    return ApiCall("PATCH", where, EntityView, asked, dict(values), if_match_header(if_match))


def describe(
    name: str,
    attributes: Mapping[str, str | None],
    *,
    take: bool = False,
    why: str | None = None,
    if_match: str | None = None,
) -> ApiCall[EntityView]:
    """Give an entity attributes, `if_match` as of `desire`; None takes one away."""
    where, asked = path("entities", name, "attributes"), query(take=take, why=why)
    return ApiCall("PATCH", where, EntityView, asked, dict(attributes), if_match_header(if_match))


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
    asked = query(dry_run=dry_run, take=take, digest=digest, why=why)
    return ApiCall("POST", path("bulk"), Bulk, asked, BulkBody([*patches], all_or_nothing))


def retry(name: str, *, why: str | None = None) -> ApiCall[Retried]:
    """Try an entity again at once."""
    return ApiCall("POST", path("entities", name, "retry"), Retried, query(why=why))


def apply(
    site: SiteBody,
    *,
    dry_run: bool = False,
    take: bool = False,
    digest: str | None = None,
    why: str | None = None,
) -> ApiCall[AppliedView]:
    """Make a site what the cluster should be."""
    asked = query(dry_run=dry_run, take=take, digest=digest, why=why)
    return ApiCall("POST", path("apply"), AppliedView, asked, site)


def diff(site: SiteBody) -> ApiCall[Difference]:
    """In what a site and what is in force differ."""
    return ApiCall("POST", path("diff"), Difference, body=site)


def export(owner: str | None = None) -> ApiCall[Exported]:
    """What is in force as a site file, or what one owner has of it."""
    return ApiCall("GET", path("export"), Exported, query(owner=owner))


def execute(
    entity: str, words: Iterable[str], *, stdin: bytes | None = None, within_s: int | None = None
) -> ApiCall[ExecView]:
    """Run a command on a node, or in a system, as `node:n1` or `system:login@n1`.

    What comes of it is told in lines: to be read with `lines`.
    """
    body = ExecBody([*words], stdin, WITHIN_S_DEFAULT if within_s is None else within_s)
    return ApiCall("POST", path("entities", entity, "exec"), ExecView, body=body)


def freezes() -> ApiCall[Frozen]:
    """All freezes."""
    return ApiCall("GET", path("freezes"), Frozen)


def freeze(
    selector: str, reason: str, *, for_s: int | None = None, even_if_none: bool = False
) -> ApiCall[FreezeView]:
    """Begin no step on what a selector names; without `for_s`, until somebody thaws it."""
    body = FreezeBody(selector, reason, for_s, even_if_none)
    return ApiCall("POST", path("freezes"), FreezeView, body=body)


def thaw(selector: str, *, why: str | None = None) -> ApiCall[Thawed]:
    """Let go on what a selector names."""
    return ApiCall("DELETE", path("freezes"), Thawed, query(selector=selector, why=why))


def brake() -> ApiCall[BrakeView]:
    """Why the brake is on, and for how long."""
    return ApiCall("GET", path("brake"), BrakeView)


def release_brake(*, why: str | None = None) -> ApiCall[BrakeView]:
    """Let disruptive steps go on; the answer is how the brake stood before."""
    return ApiCall("DELETE", path("brake"), BrakeView, query(why=why))


def history(
    select: str | None = None, *, limit: int | None = None, before: int | None = None
) -> ApiCall[Page]:
    """What was changed of what is desired, latest first; `before` is an earlier page's."""
    return ApiCall("GET", path("history"), Page, query(select=select, limit=limit, before=before))


def happenings(select: str | None = None, *, limit: int | None = None) -> ApiCall[Happenings]:
    """What was seen, where it stood, what was tried, latest first."""
    return ApiCall("GET", path("happenings"), Happenings, query(select=select, limit=limit))


def past(at_s: int, select: str | None = None) -> ApiCall[Past]:
    """How entities were at a time, in seconds since 1970."""
    return ApiCall("GET", path("past"), Past, query(at=at_s, select=select))


def audit(*, limit: int | None = None) -> ApiCall[Audit]:
    """What was asked for of all that changes anything, by whom, latest first."""
    return ApiCall("GET", path("audit"), Audit, query(limit=limit))


def revert(
    revision: int, *, dry_run: bool = False, digest: str | None = None, why: str | None = None
) -> ApiCall[AppliedView]:
    """Undo the write that made a revision."""
    asked = query(dry_run=dry_run, digest=digest, why=why)
    return ApiCall("POST", path("revert", str(revision)), AppliedView, asked)


def caller() -> ApiCall[CallerView]:
    """Who asks, and what they may."""
    return ApiCall("GET", path("caller"), CallerView)


def tokens() -> ApiCall[Tokens]:
    """All tokens that hold."""
    return ApiCall("GET", path("tokens"), Tokens)


def make_token(
    name: str, scope: Scope, *, for_s: int, within: str | None = None
) -> ApiCall[TokenMade]:
    """Make a token for a user."""
    body = TokenBody(name, scope, for_s, within)
    return ApiCall("POST", path("tokens"), TokenMade, body=body)


def certify(body: CertificateBody) -> ApiCall[CertificateMade]:
    """Make a client certificate for the key of a request."""
    return ApiCall("POST", path("certificates"), CertificateMade, body=body)


def revoke_token(key: str) -> ApiCall[TokenView]:
    """Take a token back, by its id."""
    return ApiCall("DELETE", path("tokens", key), TokenView)


def events(
    select: str | None = None,
    *,
    types: Iterable[News] | None = None,
    kinds: Iterable[str] | None = None,
) -> ApiCall[Event]:
    """What changes, as it does: to be followed, not asked."""
    asked = query(types=types, kinds=kinds, select=select)
    return ApiCall("GET", path("events"), Event, asked)


def submit(body: SubmitBody) -> ApiCall[Submitted]:
    """Queue a job, or an array; with a key in it, it may be sent again."""
    return ApiCall("POST", path("jobs"), Submitted, body=body)


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
    asked = query(state=state, select=select, first=first, limit=limit, since=since, wait_s=wait_s)
    return ApiCall("GET", path("jobs"), JobsView, asked)


def job(key: int, *, wait_s: int | None = None) -> ApiCall[JobView]:
    """One job, and why it is not done; told once it has ended, or after so many seconds."""
    return ApiCall("GET", path("jobs", str(key)), JobView, query(wait_s=wait_s))


def cancel_job(key: int, *, why: str | None = None) -> ApiCall[JobView]:
    """End a job, or have it never begin."""
    return ApiCall("DELETE", path("jobs", str(key)), JobView, query(why=why))


def cancel_jobs(select: str, *, why: str | None = None) -> ApiCall[CancelledJobs]:
    """End all jobs that a selector means, in one request."""
    return ApiCall("DELETE", path("jobs"), CancelledJobs, query(select=select, why=why))


def prioritize(key: int, priority: int) -> ApiCall[JobView]:
    """Give a job that waits another priority."""
    return ApiCall("PATCH", path("jobs", str(key)), JobView, body=PriorityBody(priority))


def queue() -> ApiCall[QueueView]:
    """Who takes jobs, what waits, and what there is too little of."""
    return ApiCall("GET", path("queue"), QueueView)


def relieve(node: str, body: DutyBody) -> ApiCall[HolderView]:
    """Have a node take no new jobs: drain it, hold it, or say that it has failed."""
    return ApiCall("PUT", path("duties", node), HolderView, body=body)


def resume(node: str) -> ApiCall[HolderView]:
    """Have a node take jobs again, which ends a drain."""
    return ApiCall("DELETE", path("duties", node), HolderView)


def relieve_many(
    select: str, body: DutyBody, *, state: DutyState | None = None, who: str | None = None
) -> ApiCall[HoldersView]:
    """Have all nodes that a selector means take no new jobs, in one request."""
    asked = query(select=select, state=state, who=who)
    return ApiCall("PUT", path("duties"), HoldersView, asked, body)


def resume_many(
    select: str, *, state: DutyState | None = None, who: str | None = None
) -> ApiCall[HoldersView]:
    """Have all nodes that a selector means take jobs again, in one request."""
    asked = query(select=select, state=state, who=who)
    return ApiCall("DELETE", path("duties"), HoldersView, asked)
