"""The decision on one entity: its status, what comes next, and all that it claims for that."""

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from haptera.core.state.entity.attempts import Oscillation
from haptera.core.state.entity.verdict import Verdict
from haptera.model.parts import Look, Step


class ClaimKind(StrEnum):
    """Something that others need too, or that has to be requested first.

    `QUEUE` is the part's place in the queue of its module, kept while something else is lacking.
    """

    MODULE = "process of the module"
    SLOT = "slot of the module"
    QUEUE = "place in the queue of the module"
    BOOT = "turn to boot"
    BUDGET = "place in the budgets here"
    BUDGET_ABOVE = "place in the budgets above"
    PERMIT = "permit of the node"


class Awaited(StrEnum):
    """A change that ends a wait before its time."""

    AGENT = "a hello of the node's agent"
    BRAKE = "the release of the brake"
    PERMIT = "an answer to the request for a permit"
    ROOM = "an answer to the request for room in the budgets above"


class Assent(msgspec.Struct, frozen=True, gc=False):
    """An answer to a claim: it is there for the entity."""


class Delay(msgspec.Struct, frozen=True, gc=False):
    """An answer to a claim: it is not there yet, and the entity waits for it.

    `needs` says who or what would have to change, `until` when that is known to happen; `on` that
    an answer is outstanding, which has to be asked for again.
    """

    why: str
    needs: str | None = None
    until: int | None = None
    on: Awaited | None = None


class Denial(msgspec.Struct, frozen=True, gc=False):
    """An answer to a claim: refused; the entity leaves all that it has for this part to others.

    It claims that again from `again_at` on.
    """

    why: str
    again_at: int


# What all who grant claims answer, before and when they are claimed.
ClaimAnswer = Assent | Delay | Denial
ASSENT: Final = Assent()


class EntityClaim(msgspec.Struct, frozen=True, gc=False):
    """One thing that an entity holds or waits for, by the answer of who grants it.

    `id` names the module, the part, or the node or service that the claim counts for.
    """

    kind: ClaimKind
    id: str
    answer: Assent | Delay = ASSENT


class Stale(msgspec.Struct, frozen=True, gc=False):
    """Readings that no longer count, because of when they were taken."""

    variables: tuple[str, ...]


class HelloDue(msgspec.Struct, frozen=True, gc=False):
    """A hello of the node's agent is due by then."""

    due_at: int


class HelloMissed(msgspec.Struct, frozen=True, gc=False):
    """No hello came in time, which is a failure of the look that waits for it."""

    error: str


Awaits = Awaited | Denial | Stale | HelloDue | HelloMissed | Oscillation


class Wait(msgspec.Struct, frozen=True, gc=False):
    """No part is begun; where more is to be noted than the status tells, `on` says what."""

    on: Awaits | None = None


class Withdraw(msgspec.Struct, frozen=True, gc=False):
    """The step whose intent is durable is not begun, for this reason."""

    outcome: str


class StopUnwanted(msgspec.Struct, frozen=True, gc=False):
    """The step under way is asked to stop, because something else is desired."""


Next = Look | Step | Wait | Withdraw | StopUnwanted


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The decision of one side on an entity, as a value.

    Once it is carried out, the entity holds exactly the `claims` that it names. `looks` are to be
    taken at once, whatever comes next. It is decided again at `wake_at`, if nothing happens before;
    `incomplete` where there was no time left to plan.
    """

    status: Verdict
    next: Next = Wait()
    claims: tuple[EntityClaim, ...] = ()
    looks: tuple[Look, ...] = ()
    wake_at: int | None = None
    incomplete: bool = False

    def claim(self, kind: ClaimKind) -> EntityClaim | None:
        """The claim of this kind; there is at most one."""
        return next((one for one in self.claims if one.kind is kind), None)


class Lacking(NamedTuple):
    """A reason not to begin a part now, and who or what would have to change; if known, when.

    The rest goes into the decision.
    """

    why: str
    needs: str | None = None
    at: int | None = None
    wake_at: int | None = None
    on: Awaits | None = None
    looks: tuple[Look, ...] = ()


def soonest(*times: int | None) -> int | None:
    """The earliest of these times; None where there is none."""
    return min((at for at in times if at is not None), default=None)
