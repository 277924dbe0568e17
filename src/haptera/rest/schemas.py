"""What goes over the API as JSON, for both ends: bodies, answers, events, problems."""

from typing import Annotated, Final

import msgspec

from haptera.model.answers.past import Deed, Happened, PastView
from haptera.model.answers.plan import Plan
from haptera.model.answers.views import AlikeView, EntityView, Faults
from haptera.model.changes import (
    Change,
    CloseIntent,
    Declare,
    OpenIntent,
    SetDesired,
    Undeclare,
    UnsetDesired,
)
from haptera.model.news import News
from haptera.model.text import Content, Line, Path
from haptera.model.token_scope import Scope
from haptera.rest.problems import ProblemView

# A token holds for two years at most.
TOKEN_FOR_S_MAX: Final = 2 * 366 * 86_400
# How many entities one request patches.
PATCHES_MAX: Final = 10_000


class Health(msgspec.Struct, frozen=True):
    """That the parent runs, and its version."""

    status: str
    version: str


class Entities(msgspec.Struct, frozen=True):
    """Many entities, each as it was when it was sent: at this revision, or a later one."""

    epoch: int
    revision: int
    faults: Faults = []
    entities: list[EntityView] = []


class LogView(msgspec.Struct, frozen=True):
    """What a module or a service has written, as lines; `after` is where the next ones begin.

    Asked for what follows such a place, it has lines that are complete. `anew` says that the log
    has begun anew since: some lines may be missing.
    """

    entity: str
    lines: list[str]
    after: str
    anew: bool = False


class SummaryView(msgspec.Struct, frozen=True):
    """How many entities of each kind stand in each condition.

    `subtrees` counts those alone that are below each parent directly below this one.
    """

    cluster: str
    epoch: int
    revision: int
    counts: dict[str, dict[str, int]]
    subtrees: dict[str, dict[str, dict[str, int]]] = {}
    faults: Faults = []


class StatusView(msgspec.Struct, frozen=True):
    """The condition of a cluster: entities that stand alike grouped, what is wrong last."""

    cluster: str
    epoch: int
    revision: int
    alike: list[AlikeView]
    faults: Faults = []


class SiteFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One file of a site; `name` is what errors call it.

    `included` says that what it includes is sent along.
    """

    name: Path
    text: Content
    included: bool = False


class SiteBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A site as sent: all of its files, and in `constants` what their templates know.

    With `if_revision` it is applied only if nothing that is desired changed since.
    """

    files: Annotated[list[SiteFile], msgspec.Meta(min_length=1)]
    constants: dict[Line, Content] = {}
    if_revision: int | None = None


class ChangeView(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of desired state; `does` is declare, undeclare, set or unset."""

    does: str
    entity: str
    name: str | None = None
    value: str | int | None = None


class AppliedView(msgspec.Struct, frozen=True):
    """What was changed, or would be, and what that starts; a `wide` plan needs its digest.

    `not_started` are modules and controllers that the parent would have to be restarted for.
    """

    revision: int
    changes: list[ChangeView]
    plan: Plan
    wide: bool
    not_started: list[str] = []


def change_view(change: Change) -> ChangeView:
    """One change as it is announced."""
    match change:
        case Declare(entity):
            return ChangeView("declare", str(entity))
        case Undeclare(entity):
            return ChangeView("undeclare", str(entity))
        case SetDesired(entity, name, value):
            return ChangeView("set", str(entity), name, value)
        case UnsetDesired(entity, name):
            return ChangeView("unset", str(entity), name)
        case OpenIntent() | CloseIntent():
            raise AssertionError("an intent is no change of what is desired")


class EntityPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A merge patch of one entity: a value sets, null unsets, what is not named stays.

    With `if_match`, the ETag of an earlier answer, only if it is still so.
    """

    entity: Line
    desired: dict[Line, Content | int | None] = {}
    attributes: dict[Line, Content | None] = {}
    if_match: Line | None = None


class BulkBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Patches of many entities, each by itself, or all of them or none."""

    patches: Annotated[list[EntityPatch], msgspec.Meta(min_length=1, max_length=PATCHES_MAX)]
    all_or_nothing: bool = False


class DifferenceView(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value as it is in force and as a site has it; None where there is none.

    Without a `name` it is the entity itself, which is "declared". `owner` is who else than the
    site the value in force belongs to.
    """

    entity: str
    name: str | None
    before: str | int | None
    after: str | int | None
    owner: str | None = None


class Difference(msgspec.Struct, frozen=True):
    """All in which a site and what is in force differ."""

    revision: int
    differences: list[DifferenceView]


class Exported(msgspec.Struct, frozen=True):
    """What is in force as the text of a site file."""

    revision: int
    text: str


class Event(msgspec.Struct, frozen=True):
    """The data of one event; `gone` are entities that are no longer declared.

    `types` says in what entities changed; what only stands in a snapshot is not named there.
    `left` are those that are there, and that the selector no longer means.
    """

    cluster: str
    entities: list[EntityView]
    gone: list[str]
    types: dict[str, list[News]] = {}
    left: list[str] = []


class Past(msgspec.Struct, frozen=True):
    """How entities were at a time."""

    at_s: float
    entities: list[PastView]


class TokenBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A token to be made: whose, what it allows, for how long, and where; None: everywhere."""

    name: Line
    scope: Scope
    for_s: Annotated[int, msgspec.Meta(ge=1, le=TOKEN_FOR_S_MAX)]
    within: Content | None = None


class CallerView(msgspec.Struct, frozen=True):
    """Who asks: their name, what they may, and all that they may see, where that is limited."""

    name: str | None
    scope: Scope | None
    within: str | None


class TokenView(msgspec.Struct, frozen=True):
    """A token: whose it is and what it allows; times in seconds since 1970."""

    id: str
    name: str
    scope: Scope
    within: str | None
    made_s: int
    expires_s: int


class TokenMade(msgspec.Struct, frozen=True):
    """A token that was made; its text is shown this once."""

    token: TokenView
    text: str


class CertificateBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A client certificate to be made, as a token; `request` asks for it, in PEM (PKCS #10)."""

    name: Line
    scope: Scope
    for_s: Annotated[int, msgspec.Meta(ge=1, le=TOKEN_FOR_S_MAX)]
    request: Content
    within: Content | None = None


class CertificateMade(msgspec.Struct, frozen=True):
    """A client certificate, and that of the authority, in PEM; it holds as long as its token."""

    token: TokenView
    certificate: str
    authority: str


class Evicted(msgspec.Struct, frozen=True):
    """A node whose session was ended, and which of its boots that was of."""

    node: str
    incarnation: int


class Tokens(msgspec.Struct, frozen=True):
    """All tokens that hold, the oldest first."""

    tokens: list[TokenView]


class Happenings(msgspec.Struct, frozen=True):
    """What happened, latest first."""

    happened: list[Happened]


class Audit(msgspec.Struct, frozen=True):
    """What was asked for, latest first."""

    deeds: list[Deed]


class Overridden(msgspec.Struct, frozen=True):
    """The node whose permit is not needed for so long."""

    node: str
    for_s: int


class Retried(msgspec.Struct, frozen=True):
    """The entity that is tried again."""

    entity: str


class Patched(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of one patch: its status, the ETag of its entity after it, or its problem."""

    entity: str
    status: int
    etag: str | None = None
    problem: ProblemView | None = None


class Bulk(msgspec.Struct, frozen=True):
    """What came of patches, in their order, and what that starts: a plan of each write."""

    revision: int
    results: list[Patched]
    plans: list[Plan]


class ReplicaView(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a follower of the store lacks: `batches` lead to `place` of `log`, which is at `at`.

    `whole` is the state file as it was at `place` without the batches; `files` is all that lies
    beside it, by path, where that has another digest than the follower said. Nodes reach the parent
    at `address`.
    """

    log: int
    place: int
    at: int
    batches: list[bytes]
    digest: str
    whole: bytes | None = None
    files: dict[str, bytes] | None = None
    address: str | None = None

    def __repr__(self) -> str:
        """Without what must be in no log."""
        return f"ReplicaView({self.log}, {self.place})"


class ReportBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a parent below keeps, in a form of its own, between equal versions."""

    report: bytes


class ReportTaken(msgspec.Struct, frozen=True):
    """Which process took it: another one than before knows nothing of earlier reports.

    `answer` is what it says to the report before, and what people ask of nodes below.
    """

    log: int
    answer: bytes = b""


class FreezeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is to be frozen and why; without `for_s`, until somebody thaws it.

    With `even_if_none`, also where a pattern means nothing that is declared yet.
    """

    selector: Content
    reason: Content
    for_s: int | None = None
    even_if_none: bool = False


class FreezeView(msgspec.Struct, frozen=True):
    """One freeze; `entities` are how many are declared that it holds, `until_s` since 1970."""

    entity: str
    selector: str
    reason: str
    owner: str
    until_s: int | None
    entities: int


class Frozen(msgspec.Struct, frozen=True):
    """All freezes there are."""

    freezes: list[FreezeView]


class ThawView(msgspec.Struct, frozen=True):
    """What of a freeze was thawed, and what of it stays frozen."""

    selector: str
    owner: str
    thawed: str
    rest: str | None


class Thawed(msgspec.Struct, frozen=True):
    """What was thawed, all that is free again by it, and all freezes that there still are."""

    revision: int
    thawed: list[ThawView]
    free: list[str]
    freezes: list[FreezeView]
