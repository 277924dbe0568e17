"""The time of a node's leases: from when something was sent, and begun anew once it ran out."""

from pathlib import Path

from haptera.app.lease import LEASE_TIME, LeaseTime, read_time, write_time
from haptera.runtime.clock import now_ns
from haptera.runtime.enrolment.lease_clock import LeaseClock

S = 1_000_000_000


def test_it_counts_from_when_what_was_heard_was_sent(tmp_path: Path) -> None:
    clock, sent_at = LeaseClock(tmp_path, 3 * S), now_ns()

    clock.confirmed(sent_at)
    began = read_time(tmp_path / LEASE_TIME)
    clock.confirmed(sent_at + S)
    clock.confirmed(sent_at)  # an answer that others overtook

    assert began.until == sent_at + 3 * S
    assert read_time(tmp_path / LEASE_TIME) == LeaseTime(sent_at + 4 * S, began.since)


def test_a_process_that_follows_goes_on_with_it(tmp_path: Path) -> None:
    sent_at = now_ns()
    LeaseClock(tmp_path, 3 * S).confirmed(sent_at)
    began = read_time(tmp_path / LEASE_TIME)

    LeaseClock(tmp_path, 3 * S).confirmed(sent_at + S)

    assert read_time(tmp_path / LEASE_TIME).since == began.since


def test_once_it_ran_out_it_begins_anew(tmp_path: Path) -> None:
    past = LeaseTime(now_ns() - 1, 0)
    write_time(tmp_path / LEASE_TIME, past)

    LeaseClock(tmp_path, 3 * S).confirmed(now_ns())

    assert read_time(tmp_path / LEASE_TIME).since > past.until
