"""How a node of a Slurm stands: each base state with each flag and reason, as a table."""

from itertools import product

import pytest

from haptera.kinds.node import NodeWork
from haptera.kinds.slurm import SlurmState
from haptera.modules.slurm.standing import (
    BY,
    DESIRED,
    HELD,
    LEFT,
    NOT_RESPONDING,
    reason_of,
    standing,
)

IN_SERVICE = ("IDLE", "ALLOCATED", "MIXED")
GONE = ("DOWN", "ERROR", "FUTURE", "UNKNOWN", "INVALID")
# All flags of slurm.h, and one that is not in it.
QUIET = (
    *("BLOCKED", "CLOUD", "COMPLETING", "DYNAMIC_FUTURE", "DYNAMIC_NORM", "EXTERNAL"),
    *("NOT_RESPONDING", "PERFCTRS", "PLANNED", "REBOOT_CANCELED", "RESUME", "UNDRAIN"),
)
KEPT = ("INVALID_REG", "MAINTENANCE", "REBOOT_ISSUED", "REBOOT_REQUESTED", "RESERVED", "NEWEST")
POWER = (
    *("POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"),
    *("POWER_DOWN", "POWER_DRAIN", "POWER_UP"),
)
FLAGS = (*QUIET, *KEPT, *POWER, "DRAIN", "FAIL")
OURS = (reason_of(frozenset((HELD,)), ""), reason_of(frozenset((DESIRED, HELD)), ""))
BASES = (*IN_SERVICE, *GONE)
OTHERS = ("bad disk", "haptera: drained as desired; and a bad disk", NOT_RESPONDING)
REASONS = ("", *OURS, *OTHERS)


def seen(*states, reason="", has_jobs=False):
    return standing(frozenset(states), reason, has_jobs=has_jobs)


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("base", BASES)
def test_only_what_nobody_else_keeps_is_open(base, flag):
    for reason, has_jobs in product(REASONS, (False, True)):
        one = seen(base, flag, reason=reason, has_jobs=has_jobs)

        is_ours = reason in OURS
        is_held = flag == "DRAIN" and reason == OURS[0]
        is_open = base in IN_SERVICE and (flag in QUIET or is_held) and (is_ours or not reason)
        assert (one.work is NodeWork.OPEN) == is_open, reason
        assert (one.work is NodeWork.FAILED) == (one.state is SlurmState.DOWN)
        if base in GONE:
            assert one.work is NodeWork.FAILED


@pytest.mark.parametrize("base", BASES)
def test_a_drain_is_haptera_s_only_by_its_own_reason_and_a_node_that_fails_is_never(base):
    for reason, *flags in product(REASONS, FLAGS, FLAGS):
        claims = seen(base, *flags, reason=reason).claims

        if "FAIL" in flags:
            assert claims is None
        elif "DRAIN" in flags:
            assert (claims is None) == (reason not in OURS)
        elif base in GONE:
            assert (claims is None) == (reason in OTHERS and reason != NOT_RESPONDING)
        else:
            assert claims == frozenset()


@pytest.mark.parametrize("base", BASES)
def test_a_node_with_a_job_is_never_idle_nor_drained(base):
    for flag, reason in product(FLAGS, REASONS):
        state = seen(base, flag, reason=reason, has_jobs=True).state
        assert state not in (SlurmState.IDLE, SlurmState.DRAINED)


def test_a_reason_of_before_is_kept_beside_ours_and_is_another_s():
    held = reason_of(frozenset((HELD,)), "watch its fan")
    one = seen("IDLE", "DRAIN", reason=held)
    assert (one.claims, one.before) == (frozenset((HELD,)), "watch its fan")
    assert (one.work, one.others) == (NodeWork.DRAINED, "watch its fan")
    assert seen("IDLE", reason="watch its fan").before == "watch its fan"
    assert seen("DOWN", "DRAIN", reason=OURS[0]).before == ""


def test_what_others_did_is_said():
    assert seen("IDLE", "DRAIN").others == "no reason is given"
    assert seen("MIXED", "MAINTENANCE", "RESERVED").others == "MAINTENANCE, RESERVED"
    assert seen("IDLE", "FAIL", reason="bad disk").others == "FAIL, bad disk"
    assert seen("IDLE", "DRAIN", reason=f"{BY}{DESIRED}").others == ""


@pytest.mark.parametrize(
    ("claims", "jobs", "work"),
    [
        ({HELD}, True, NodeWork.OPEN),
        ({DESIRED}, True, NodeWork.DRAINING),
        ({DESIRED, HELD}, False, NodeWork.DRAINED),
        ({LEFT}, True, NodeWork.HELD),
        ({LEFT, HELD}, False, NodeWork.HELD),
    ],
)
def test_what_is_desired_of_a_node_is_read_back_beside_a_disturbance(claims, jobs, work):
    ours = reason_of(frozenset(claims), "")
    one = seen("IDLE", "DRAIN", reason=ours, has_jobs=jobs)
    assert (one.work, one.as_desired) == (work, claims != {HELD})
    # Where another keeps it as well, it is not opened once nothing is desired.
    assert not seen("IDLE", "DRAIN", "RESERVED", reason=ours).as_desired
    assert not seen("DOWN", "DRAIN", reason=ours).as_desired
