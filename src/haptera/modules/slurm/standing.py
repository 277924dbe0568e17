"""How one of Slurm's nodes stands, by its states, its reason and its jobs: pure.

What others did to a node is left: haptera drains and resumes by DRAIN and its own reason only.
"""

from dataclasses import dataclass
from typing import Final

from haptera.kinds.node import NodeWork
from haptera.kinds.slurm import SlurmState

# What haptera drains it says so of; what bears another reason is another's, and stays drained.
BY: Final = "haptera: "
HELD: Final = "to be disturbed once its jobs have ended"
DESIRED: Final = "drained as desired"
LEFT: Final = "held as desired"
# What is desired of a node's work, and ends with that.
WISHES: Final = frozenset((DESIRED, LEFT))
CLAIMS: Final = WISHES | {HELD}
# Between haptera's reason and one that the node had before.
BEFORE: Final = " | before: "
NOT_RESPONDING: Final = "Not responding"
# Why Slurm gives a node up that is well again once its slurmd answers.
MENDABLE: Final = frozenset(("Node unexpectedly rebooted", NOT_RESPONDING, "ResumeTimeout reached"))
DRAIN: Final = "DRAIN"
FAIL: Final = "FAIL"
SILENT: Final = "NOT_RESPONDING"
# See the states in slurm/slurm.h; any other is taken for one in which a node runs nothing.
IN_SERVICE: Final = frozenset(("ALLOCATED", "IDLE", "MIXED"))
BUSY: Final = frozenset(("ALLOCATED", "COMPLETING", "MIXED"))
# Flags that Slurm sets for itself and that keep no job away. Any other does, known or not.
HARMLESS: Final = frozenset(
    (
        *("BLOCKED", "CLOUD", "COMPLETING", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "EXTERNAL"),
        *("PERFCTRS", "PLANNED", "REBOOT_CANCELED", "RESUME", "UNDRAIN", SILENT),
    )
)
# Slurm switches it off or on, or has done so.
POWER: Final = frozenset(
    (
        *("POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"),
        *("POWER_DOWN", "POWER_DRAIN", "POWER_UP"),
    )
)


@dataclass(frozen=True, slots=True)
class SlurmStanding:
    """What a node is to haptera.

    `claims`: why haptera drains it; None if it is another's, and to be left as it is. `before` is
    the reason that it had before haptera's. `others` says what else keeps jobs from it. One that
    haptera drains only for a disturbance is `open`; one that Slurm does not use has `failed`.
    """

    state: SlurmState
    work: NodeWork
    claims: frozenset[str] | None
    before: str
    others: str

    @property
    def as_desired(self) -> bool:
        """True if nothing but what is desired here keeps jobs from it."""
        return bool(self.claims and self.claims & WISHES) and not self.others


def standing(states: frozenset[str], reason: str, *, has_jobs: bool) -> SlurmStanding:
    """How a node stands.

    >>> one = standing(frozenset(("IDLE", "FAIL")), "bad disk", has_jobs=False)
    >>> one.work.value, one.claims, one.others
    ('drained', None, 'FAIL, bad disk')
    """
    ours, before = _read(reason)
    in_service = not states.isdisjoint(IN_SERVICE)
    claims = _claims(states, ours, before, in_service=in_service)
    if claims is None:
        before = reason
    flags = states - HARMLESS - IN_SERVICE - {DRAIN}
    others = ", ".join([*sorted(flags), *([before] if before else [])])
    if claims is None and not others:
        others = "no reason is given"
    drains = bool(claims) and DRAIN in states
    has_jobs = has_jobs or not states.isdisjoint(BUSY)
    gone = not in_service or (not has_jobs and not states.isdisjoint(POWER))
    if gone:
        return SlurmStanding(SlurmState.DOWN, NodeWork.FAILED, claims, before, others)
    closed = NodeWork.DRAINING if has_jobs else NodeWork.DRAINED
    taken = SlurmState.ALLOCATED if has_jobs else SlurmState.IDLE
    state = SlurmState(closed.value) if others or drains else taken
    work = closed if others else _wished(claims, closed) if drains else NodeWork.OPEN
    return SlurmStanding(state, work, claims, before, others)


def _wished(claims: frozenset[str] | None, closed: NodeWork) -> NodeWork:
    """By what is desired: one that is drained only for a disturbance is in use otherwise."""
    if not claims or claims.isdisjoint(WISHES):
        return NodeWork.OPEN
    return closed if DESIRED in claims else NodeWork.HELD


def reason_of(claims: frozenset[str], before: str) -> str:
    """What haptera writes as the reason of a node that it drains.

    >>> reason_of(frozenset((HELD,)), "watch its fan")
    'haptera: to be disturbed once its jobs have ended | before: watch its fan'
    """
    return BY + ", ".join(sorted(claims)) + (f"{BEFORE}{before}" if before else "")


def _read(reason: str) -> tuple[frozenset[str] | None, str]:
    """Haptera's part of a reason, None where it has none, and the part of another."""
    own, _, before = reason.partition(BEFORE)
    claims = frozenset(own.removeprefix(BY).split(", "))
    return (claims, before) if own.startswith(BY) and claims <= CLAIMS else (None, reason)


def _claims(
    states: frozenset[str], ours: frozenset[str] | None, before: str, *, in_service: bool
) -> frozenset[str] | None:
    # `state=drain` takes FAIL away, and so does `state=undrain`.
    if FAIL in states:
        return None
    if DRAIN in states:
        return ours
    # Slurm takes back by itself what it gave up, so that one is drained; a person's word counts.
    is_free = in_service or not before or before in MENDABLE
    return frozenset() if is_free else None
