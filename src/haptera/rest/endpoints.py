"""All endpoints of the API: method, path, scope, query, body and answer, each declared once here.

`haptera.api.routes` answers them, `haptera.client.calls` calls them; docs/reference/openapi.json
is made of them.
"""

from http import HTTPStatus
from typing import Final

from haptera.kinds.inventory import Inventory
from haptera.model.answers.graph import DrawingView
from haptera.model.answers.past import Changed, Deed, Happened, Page, PastView
from haptera.model.answers.story import StoryView
from haptera.model.answers.views import BrakeView, EntityDetail, EntityView, TreeView
from haptera.model.text import Content, Line
from haptera.model.token_scope import Scope
from haptera.rest import exec as execution
from haptera.rest import jobs, query, readings, rolls, samples, schemas, unclaimed
from haptera.rest.endpoint import LINES, Endpoint
from haptera.rest.lemons import Lemons

READ, WRITE, EXEC, ADMIN = Scope.READ, Scope.WRITE, Scope.EXEC, Scope.ADMIN
NOT_FOUND: Final = HTTPStatus.NOT_FOUND
CONFLICT: Final = HTTPStatus.CONFLICT
BUSY: Final = HTTPStatus.TOO_MANY_REQUESTS
# It shows a plan, and is done only with its digest.
UNPLANNED: Final = HTTPStatus.PRECONDITION_REQUIRED
# The file that holds the past is there, and cannot be read.
UNREAD: Final = (HTTPStatus.SERVICE_UNAVAILABLE,)
# With what a change may be refused that is sound in itself.
UNWRITTEN: Final = (
    CONFLICT,
    HTTPStatus.PRECONDITION_FAILED,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INSUFFICIENT_STORAGE,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
SOME: Final = (HTTPStatus.MULTI_STATUS,)
_UNKEPT: Final = "Its answer holds a secret, which is told once and not kept."
_QUEUE: Final = "Jobs bring a key of their own; other requests of the queue may be repeated."

# fmt: off
HEALTH = Endpoint("GET", "/v1/health", None, schemas.Health)
OPENAPI = Endpoint("GET", "/v1/openapi.json", None, str)
METRICS = Endpoint("GET", "/metrics", READ, str, media_type="text/plain")
READINGS = Endpoint("GET", "/metrics/readings", READ, str, media_type="text/plain")

SUMMARY = Endpoint("GET", "/v1/summary", READ, schemas.SummaryView, narrows=True)
STATUS = Endpoint("GET", "/v1/status", READ, schemas.StatusView, query.ListQuery, narrows=True)
ENTITIES = Endpoint(
    "GET", "/v1/entities", READ, schemas.Entities, query.ListQuery, lines=EntityView, narrows=True)
ENTITY = Endpoint(
    "GET", "/v1/entities/{entity}", READ, EntityDetail, query.DetailQuery, problems=(NOT_FOUND,))
GRAPH = Endpoint("GET", "/v1/entities/{entity}/graph", READ, DrawingView, problems=(NOT_FOUND,))
STORY = Endpoint("GET", "/v1/entities/{entity}/story", READ, StoryView, problems=(NOT_FOUND,))
LOG = Endpoint(
    "GET", "/v1/entities/{entity}/log", READ, schemas.LogView, query.AfterQuery,
    problems=(NOT_FOUND,))
DESIRE = Endpoint(
    "PATCH", "/v1/entities/{entity}/desired", WRITE, EntityView, query.TakeQuery,
    takes=dict[Line, Content | int | None], headers=("If-Match",),
    problems=(NOT_FOUND, *UNWRITTEN), keyed=True)
DESCRIBE = Endpoint(
    "PATCH", "/v1/entities/{entity}/attributes", WRITE, EntityView, query.TakeQuery,
    takes=dict[Line, Content | None], headers=("If-Match",),
    problems=(NOT_FOUND, *UNWRITTEN), keyed=True)
RETRY = Endpoint(
    "POST", "/v1/entities/{entity}/retry", WRITE, schemas.Retried, query.WhyQuery,
    status=HTTPStatus.ACCEPTED, problems=(NOT_FOUND, CONFLICT), keyed=True)
EXECUTE = Endpoint(
    "POST", "/v1/entities/{entity}/exec", EXEC, execution.ExecView, query.WhyQuery,
    takes=execution.ExecBody, lines=execution.ExecView, media_type=LINES,
    problems=(NOT_FOUND, CONFLICT, BUSY), unkeyed="What a command writes is not kept.")
EVENTS = Endpoint(
    "GET", "/v1/events", READ, schemas.Event, query.EventsQuery, narrows=True,
    problems=(HTTPStatus.GONE, BUSY), media_type="text/event-stream")

BULK = Endpoint(
    "POST", "/v1/bulk", WRITE, schemas.Bulk, query.ApplyQuery, takes=schemas.BulkBody,
    dry_scope=READ, narrows=True, also=SOME, problems=(NOT_FOUND, *UNWRITTEN, UNPLANNED),
    keyed=True)
APPLY = Endpoint(
    "POST", "/v1/apply", WRITE, schemas.AppliedView, query.ApplyQuery, takes=schemas.SiteBody,
    dry_scope=READ, problems=(BUSY, *UNWRITTEN, UNPLANNED), keyed=True)
DIFF = Endpoint(
    "POST", "/v1/diff", READ, schemas.Difference, takes=schemas.SiteBody, problems=(BUSY,))
BEGIN_ROLL = Endpoint(
    "POST", "/v1/rolls", WRITE, rolls.RollStarted, query.ApplyQuery, takes=rolls.RollBody,
    dry_scope=READ, narrows=True, problems=(NOT_FOUND, *UNWRITTEN, UNPLANNED), keyed=True)
EXPORT = Endpoint("GET", "/v1/export", READ, schemas.Exported, query.OwnerQuery)

FREEZES = Endpoint("GET", "/v1/freezes", READ, schemas.Frozen, narrows=True)
FREEZE = Endpoint(
    "POST", "/v1/freezes", WRITE, schemas.FreezeView, takes=schemas.FreezeBody, narrows=True,
    problems=UNWRITTEN, keyed=True)
THAW = Endpoint(
    "DELETE", "/v1/freezes", WRITE, schemas.Thawed, query.ThawQuery, narrows=True,
    problems=(NOT_FOUND, *UNWRITTEN), keyed=True)
BRAKE = Endpoint("GET", "/v1/brake", READ, BrakeView, narrows=True)
RELEASE_BRAKE = Endpoint("DELETE", "/v1/brake", WRITE, BrakeView, query.WhyQuery, keyed=True)

HISTORY = Endpoint(
    "GET", "/v1/history", READ, Page, query.PageQuery, lines=Changed, narrows=True, problems=UNREAD)
HAPPENINGS = Endpoint(
    "GET", "/v1/happenings", READ, schemas.Happenings, query.LatestQuery, lines=Happened,
    narrows=True, problems=UNREAD)
PAST = Endpoint(
    "GET", "/v1/past", READ, schemas.Past, query.TimeQuery, lines=PastView, narrows=True,
    problems=UNREAD)
LEMONS = Endpoint(
    "GET", "/v1/lemons", READ, Lemons, query.LemonsQuery, narrows=True, problems=UNREAD)
AUDIT = Endpoint(
    "GET", "/v1/audit", READ, schemas.Audit, query.LimitQuery, lines=Deed, narrows=True,
    problems=UNREAD)
REVERT = Endpoint(
    "POST", "/v1/revert/{revision}", WRITE, schemas.AppliedView, query.RevertQuery, dry_scope=READ,
    problems=(NOT_FOUND, *UNWRITTEN, UNPLANNED), keyed=True)

CALLER = Endpoint("GET", "/v1/caller", READ, schemas.CallerView, narrows=True)
TOKENS = Endpoint("GET", "/v1/tokens", ADMIN, schemas.Tokens)
MAKE_TOKEN = Endpoint(
    "POST", "/v1/tokens", ADMIN, schemas.TokenMade, takes=schemas.TokenBody,
    status=HTTPStatus.CREATED, unkeyed=_UNKEPT)
CERTIFY = Endpoint(
    "POST", "/v1/certificates", ADMIN, schemas.CertificateMade, takes=schemas.CertificateBody,
    status=HTTPStatus.CREATED, keyed=True)
REVOKE_TOKEN = Endpoint(
    "DELETE", "/v1/tokens/{token}", ADMIN, schemas.TokenView, problems=(NOT_FOUND,), keyed=True)
REPLICA = Endpoint("GET", "/v1/replica", ADMIN, schemas.ReplicaView, query.ReplicaQuery)
REPORT = Endpoint(
    "POST", "/v1/reports", ADMIN, schemas.ReportTaken, takes=schemas.ReportBody,
    unkeyed="A parent below sends each report until it is answered.")

EVICT = Endpoint(
    "DELETE", "/v1/nodes/{node}/session", ADMIN, schemas.Evicted, query.WhyQuery,
    problems=(NOT_FOUND,), keyed=True)
OVERRIDE = Endpoint(
    "POST", "/v1/nodes/{node}/override", ADMIN, schemas.Overridden, query.WhyQuery,
    problems=(NOT_FOUND, CONFLICT), keyed=True)
# Who may run any command on a node may be its agent, too: it is no more.
INVITE = Endpoint(
    "POST", "/v1/entities/{entity}/invitation", EXEC, unclaimed.InvitationView, query.WhyQuery,
    problems=(NOT_FOUND,), unkeyed=_UNKEPT)
PARENTS = Endpoint("GET", "/v1/parents", READ, TreeView)
UNCLAIMED = Endpoint("GET", "/v1/unclaimed", READ, unclaimed.Unclaimed)
# As it admits a machine, and in the name of the node's owner.
CLAIM = Endpoint(
    "POST", "/v1/nodes/{node}/claim", ADMIN, unclaimed.ClaimMade, query.WhyQuery,
    takes=unclaimed.ClaimBody, problems=(NOT_FOUND, *UNWRITTEN), keyed=True)
INVENTORY = Endpoint(
    "GET", "/v1/images/{image}/inventory", READ, Inventory, problems=(NOT_FOUND,))

SAMPLES = Endpoint(
    "GET", "/v1/samples", READ, samples.SamplesView, query.SamplesQuery,
    lines=samples.EntitySamples, narrows=True)
SERIES = Endpoint(
    "GET", "/v1/entities/{entity}/samples", READ, samples.SeriesView, query.SeriesQuery,
    problems=(NOT_FOUND,))

OBSERVE = Endpoint(
    "POST", "/v1/readings", Scope.REPORT, readings.ReadingsTaken, takes=readings.ReadingsBody,
    status=HTTPStatus.ACCEPTED, narrows=True,
    problems=(NOT_FOUND, CONFLICT, HTTPStatus.INSUFFICIENT_STORAGE),
    unkeyed="What was read at a time says the same when it is sent again.")

SUBMIT = Endpoint(
    "POST", "/v1/jobs", WRITE, jobs.Submitted, takes=jobs.SubmitBody, status=HTTPStatus.CREATED,
    problems=UNWRITTEN, unkeyed=_QUEUE)
JOBS = Endpoint("GET", "/v1/jobs", READ, jobs.JobsView, query.JobsQuery)
CANCEL_JOBS = Endpoint(
    "DELETE", "/v1/jobs", WRITE, jobs.CancelledJobs, query.CancelQuery, also=SOME,
    problems=UNWRITTEN, unkeyed=_QUEUE)
JOB = Endpoint("GET", "/v1/jobs/{job}", READ, jobs.JobView, query.WaitQuery, problems=(NOT_FOUND,))
CANCEL_JOB = Endpoint(
    "DELETE", "/v1/jobs/{job}", WRITE, jobs.JobView, query.WhyQuery,
    problems=(NOT_FOUND, *UNWRITTEN), unkeyed=_QUEUE)
PRIORITIZE = Endpoint(
    "PATCH", "/v1/jobs/{job}", WRITE, jobs.JobView, takes=jobs.PriorityBody,
    problems=(NOT_FOUND, *UNWRITTEN), unkeyed=_QUEUE)
QUEUE = Endpoint(
    "GET", "/v1/queue", READ, jobs.QueueView, query.QueueQuery, problems=(NOT_FOUND,))
# fmt: on

ENDPOINTS: Final = tuple(one for one in [*globals().values()] if isinstance(one, Endpoint))
