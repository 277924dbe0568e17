"""What the query of a request may have: each name with what it means and what it may be."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from haptera.model.answers.plan import DIGEST_DIGITS
from haptera.model.walltime import WALL_S_MAX

# Characters of the reason that is given for a change.
WHY_CHARS_MAX: Final = 500
# Changes or happenings that one answer holds, unless it is told how many.
LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 10_000

Flag = Literal["0", "1"]


@dataclass(frozen=True, slots=True)
class Query:
    """One name that a query may have; `form` is what it may be, as a type."""

    name: str
    says: str
    form: Any = str
    required: bool = False


DRY_RUN: Final = Query("dry_run", "1: return what would change, and change nothing.", Flag)
TAKE: Final = Query("take", "1: take over values of other owners.", Flag)
DIGEST: Final = Query(
    "digest",
    "The digest of the plan: it is applied only if the plan is unchanged.",
    Annotated[str, Meta(pattern=f"^[0-9a-f]{{{DIGEST_DIGITS}}}$")],
)
AGENT: Final = Query("agent", "1: add the view of its node's agent; takes up to 2 s.", Flag)
EXPLAIN: Final = Query(
    "explain", "1: add the reasons for its chain, or the goals that can be reached instead.", Flag
)
WHY: Final = Query(
    "why",
    "The reason, for the history.",
    Annotated[str, Meta(max_length=WHY_CHARS_MAX)],
)
SELECT: Final = Query("select", "Only what this selector matches; default: *.")
KIND: Final = Query("kind", "Only entities of this kind.")
NODES: Final = Query("nodes", "Only entities on this node-set.")
OWNER: Final = Query("owner", "Only values of this owner: site, user:NAME, controller:NAME.")
LIMIT: Final = Query("limit", "At most this many.", Annotated[int, Meta(ge=1, le=LIMIT_MAX)])
BEFORE: Final = Query(
    "before", "Continue from `before` of an earlier answer.", Annotated[int, Meta(ge=1)]
)
AFTER: Final = Query("after", "Continue from `after` of an earlier answer.")
AT: Final = Query(
    "at",
    "The time, in seconds since 1970.",
    Annotated[int, Meta(ge=0, le=WALL_S_MAX)],
    required=True,
)
THAWED: Final = Query("selector", "What to thaw.", required=True)
TYPES: Final = Query("types", "Only changes of these types, separated by commas.")
KINDS_WANTED: Final = Query("kinds", "Only entities of these kinds, separated by commas.")
