"""First contact, restarts and replays of a session: each case with the datagrams written out."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.wire.frame import BODY_BYTES_MAX, DatagramType, FrameFault, Reject, Suite
from haptera.wire.seal import (
    DERIVATIONS_PER_S_MAX,
    GREETS_PER_S_MAX,
    RETIRED_MAX,
    Agreement,
    Greet,
    Opened,
    Origin,
    SealRole,
    Session,
)

SECOND = 1_000_000_000
AGREEMENT = Agreement(
    secret=bytes(range(32)),
    cluster=UUID(int=0xC1),
    node=UUID(int=0x0D),
    incarnation=3,
    parent_index=0x1111,
    child_index=0x2222,
)
HELLO, HI = DatagramType.HELLO, DatagramType.HI


def parent(boot: int, saved: int | None = None, agreement: Agreement = AGREEMENT) -> Session:
    return Session(agreement, SealRole.PARENT, boot, saved)


def child(boot: int, saved: int | None = None, agreement: Agreement = AGREEMENT) -> Session:
    return Session(agreement, SealRole.CHILD, boot, saved)


def said_hi(receiver: Session, datagram: bytes, now: int) -> bytes:
    """The `hi` with which this end answers a datagram that does not fit."""
    greet = receiver.open(datagram, now)
    assert isinstance(greet, Greet)
    return receiver.seal_hi(greet)


def meet(left: Session, right: Session, now: int = 0) -> None:
    """Let two ends that do not know each other's process take each other up."""
    hi = said_hi(right, left.seal(b""), now)
    assert isinstance(left.open(hi, now), Opened)
    assert isinstance(right.open(left.seal(b""), now), Opened)


def opened(body: bytes, boot: int, *, new: bool = False, late: bool = False) -> Opened:
    return Opened(HELLO, body, boot, new_boot=new, late=late)


def assert_they_talk(left: Session, right: Session, now: int) -> None:
    for sender, receiver in ((left, right), (right, left)):
        answer = receiver.open(sender.seal(b"well?"), now)
        assert isinstance(answer, Opened)
        assert answer.body == b"well?"


@pytest.mark.parametrize(
    ("suite", "datagram"),
    [
        (
            Suite.CHACHA20_POLY1305,
            "010101010000111100000000000000a10000000000000001"
            "d5933baf3ed46c99b365cc23c8623daadb00e06a006ca8af48cc82fed803237747ab28948d09f9",
        ),
        (
            Suite.AES_256_GCM,
            "010102010000111100000000000000a10000000000000001"
            "dfaedc7fd6136f47726eeb6f32bebc6d16acfff6e453d823a19a573ebe474a8add12a393afb1f2",
        ),
    ],
)
def test_a_sealed_hello_has_these_very_bytes(suite: Suite, datagram: str) -> None:
    # Held equal, when written, to what the standard library's hmac makes of RFC 5869.
    agreement = replace(AGREEMENT, suite=suite)
    sender = child(0xA1, saved=0xB1, agreement=agreement)

    assert sender.seal(b"a hello").hex() == datagram


@pytest.mark.parametrize("suite", list(Suite))
def test_first_contact_takes_a_hello_a_hi_and_a_hello(suite: Suite) -> None:
    agreement = replace(AGREEMENT, suite=suite)
    up, down = child(0xA1, agreement=agreement), parent(0xB1, agreement=agreement)

    greet = down.open(up.seal(b"one"), now=0)
    assert greet == Greet(0xA1, 1)
    assert up.open(down.seal_hi(greet), now=0) == Opened(HI, b"", 0xB1, new_boot=True, late=False)
    assert down.open(up.seal(b"two"), now=0) == opened(b"two", 0xA1, new=True)
    assert down.open(up.seal(b"three"), now=0) == opened(b"three", 0xA1)
    assert up.open(down.seal(b"four"), now=0) == opened(b"four", 0xB1)


def test_first_contact_works_where_both_speak_first() -> None:
    up, down = child(0xA1), parent(0xB1)
    first_up, first_down = up.seal(b"up"), down.seal(b"down")

    hi_down, hi_up = said_hi(down, first_up, 0), said_hi(up, first_down, 0)
    assert isinstance(up.open(hi_down, 0), Opened)
    assert isinstance(down.open(hi_up, 0), Opened)

    assert_they_talk(up, down, 0)


def test_a_restarted_child_is_taken_up_again() -> None:
    old, down = child(0xA1), parent(0xB1)
    meet(old, down)
    new = child(0xA2, saved=old.peer_boot)

    hi = said_hi(down, new.seal(b"I am back"), SECOND)
    assert isinstance(new.open(hi, SECOND), Opened)
    assert down.open(new.seal(b"I am back"), SECOND) == opened(b"I am back", 0xA2, new=True)
    assert down.peer_boot == 0xA2
    assert_they_talk(new, down, SECOND)


def test_a_restarted_child_is_taken_up_where_its_parent_speaks_first() -> None:
    old, down = child(0xA1), parent(0xB1)
    meet(old, down)
    new = child(0xA2, saved=old.peer_boot)

    hi = said_hi(new, down.seal(b"still there?"), SECOND)
    assert down.open(hi, SECOND) == Opened(HI, b"", 0xA2, new_boot=True, late=False)
    assert_they_talk(down, new, SECOND)


@pytest.mark.parametrize("saved", [0xA1, None])
def test_a_restarted_parent_keeps_its_child(saved: int | None) -> None:
    up, old = child(0xA1), parent(0xB1)
    meet(up, old)
    new = parent(0xB2, saved)

    hi = said_hi(new, up.seal(b"as ever"), SECOND)
    assert up.open(hi, SECOND) == Opened(HI, b"", 0xB2, new_boot=True, late=False)
    assert new.open(up.seal(b"as ever"), SECOND) == opened(b"as ever", 0xA1, new=True)
    assert_they_talk(up, new, SECOND)


@pytest.mark.parametrize("saved", [0xA1, None])
def test_a_restarted_parent_that_speaks_first_keeps_its_child(saved: int | None) -> None:
    up, old = child(0xA1), parent(0xB1)
    meet(up, old)
    new = parent(0xB2, saved)

    hi = said_hi(up, new.seal(b"I am back"), SECOND)
    assert new.open(hi, SECOND) == Opened(HI, b"", 0xA1, new_boot=True, late=False)
    assert up.open(new.seal(b"I am back"), SECOND) == opened(b"I am back", 0xB2, new=True)
    assert_they_talk(up, new, SECOND)


@pytest.mark.parametrize("saved", [(0xA1, 0xB1), (None, None), (0xA1, None), (None, 0xB1)])
def test_both_find_each_other_where_both_restarted(saved: tuple[int | None, int | None]) -> None:
    meet(child(0xA1), parent(0xB1))
    down, up = parent(0xB2, saved[0]), child(0xA2, saved[1])

    hi = said_hi(down, up.seal(b"I am back"), SECOND)
    assert isinstance(up.open(hi, SECOND), Opened)
    assert down.open(up.seal(b"I am back"), SECOND) == opened(b"I am back", 0xA2, new=True)
    assert_they_talk(up, down, SECOND)


def test_a_replayed_datagram_changes_nothing() -> None:
    up, down = child(0xA1), parent(0xB1)
    meet(up, down)
    hello = up.seal(b"once")

    assert down.open(hello, 0) == opened(b"once", 0xA1)
    assert down.open(hello, 0) == Reject(FrameFault.SEEN)


def test_reordered_datagrams_are_each_accepted_once_and_called_late() -> None:
    up, down = child(0xA1), parent(0xB1)
    meet(up, down)
    first, second = up.seal(b"first"), up.seal(b"second")

    assert down.open(second, 0) == opened(b"second", 0xA1)
    assert down.open(first, 0) == opened(b"first", 0xA1, late=True)
    assert down.open(first, 0) == Reject(FrameFault.SEEN)


def test_replays_from_before_the_childs_restart_change_nothing() -> None:
    old, down = child(0xA1), parent(0xB1)
    meet(old, down)
    heard, lost = old.seal(b"heard"), old.seal(b"lost")
    assert isinstance(down.open(heard, 0), Opened)
    new = child(0xA2, saved=old.peer_boot)
    meet(new, down, SECOND)

    assert down.open(heard, 2 * SECOND) == Reject(FrameFault.RETIRED)
    assert down.open(lost, 2 * SECOND) == Reject(FrameFault.RETIRED)
    assert down.peer_boot == 0xA2
    assert_they_talk(new, down, 2 * SECOND)


def test_replays_to_a_restarted_child_change_nothing() -> None:
    old, down = child(0xA1), parent(0xB1)
    meet(old, down)
    heard, lost = down.seal(b"heard"), down.seal(b"lost")
    assert isinstance(old.open(heard, 0), Opened)
    new = child(0xA2, saved=old.peer_boot)

    # Each asks for a `hi`, to the address on record, and for no more.
    assert new.open(heard, SECOND) == Greet(0xB1, 2)
    meet(new, down, 2 * SECOND)
    assert new.open(heard, 3 * SECOND) == Greet(0xB1, 2)
    assert new.open(lost, 4 * SECOND) == Greet(0xB1, 3)
    assert_they_talk(new, down, 5 * SECOND)


@pytest.mark.parametrize("saved", [0xA1, None])
def test_replays_from_before_the_parents_restart_change_nothing(saved: int | None) -> None:
    up, old = child(0xA1), parent(0xB1)
    meet(up, old)
    heard, lost = up.seal(b"heard"), up.seal(b"lost")
    assert isinstance(old.open(heard, 0), Opened)
    new = parent(0xB2, saved)

    assert new.open(heard, SECOND) == Greet(0xA1, 3)
    assert new.open(lost, 2 * SECOND) == Greet(0xA1, 4)
    assert new.peer_boot == saved
    meet(up, new, 3 * SECOND)
    assert new.open(heard, 4 * SECOND) == Greet(0xA1, 3)
    assert_they_talk(up, new, 5 * SECOND)


def test_replays_from_before_both_restarted_change_nothing() -> None:
    old_up, old_down = child(0xA1), parent(0xB1)
    meet(old_up, old_down)
    to_parent, to_child = old_up.seal(b"lost"), old_down.seal(b"lost")
    up, down = child(0xA2, saved=0xB1), parent(0xB2, saved=0xA1)

    for now in (SECOND, 3 * SECOND):
        assert isinstance(up.open(to_child, now), Greet | Reject)
        assert isinstance(down.open(to_parent, now), Greet | Reject)
        if now == SECOND:
            assert (up.peer_boot, down.peer_boot) == (0xB1, 0xA1)
            meet(up, down, 2 * SECOND)
    assert (up.peer_boot, down.peer_boot) == (0xB2, 0xA2)
    assert_they_talk(up, down, 5 * SECOND)


def test_a_replay_is_no_way_back_for_a_process_that_is_long_gone() -> None:
    first, down = child(0xA1), parent(0xB1)
    meet(first, down)
    lost = first.seal(b"never heard")
    for at in range(RETIRED_MAX + 2):
        meet(child(0xA2 + at), down, (at + 1) * SECOND)
    boot = down.peer_boot

    # It has left the short list, but can echo nothing that was sent after its end.
    assert down.open(lost, 100 * SECOND) == Greet(0xA1, 3)
    assert down.peer_boot == boot


def test_a_clone_that_lives_on_is_not_taken_up_again() -> None:
    clone, down = child(0xA1), parent(0xB1)
    meet(clone, down)
    meet(child(0xA2), down, SECOND)

    hi = said_hi(clone, down.seal(b"to the new one"), SECOND)
    assert down.open(hi, SECOND) == Reject(FrameFault.RETIRED)


def test_an_echo_from_before_the_last_accepted_datagram_takes_nobody_up() -> None:
    old, down = child(0xA1), parent(0xB1)
    meet(old, down)
    in_flight = old.seal(b"in flight")
    new = child(0xA2)
    hi = said_hi(new, down.seal(b"to the new one"), 0)

    assert down.open(in_flight, 0) == opened(b"in flight", 0xA1)
    greet = down.open(hi, SECOND)
    assert greet == Greet(0xA2, 1)
    assert isinstance(new.open(down.seal_hi(greet), 0), Opened)
    assert down.open(new.seal(b"now"), 0) == opened(b"now", 0xA2, new=True)


def test_a_hi_is_asked_for_four_times_at_once_and_then_four_times_a_second() -> None:
    up, down = child(0xA1), parent(0xB1)

    times = (0, 1, 2, 3, 4, SECOND // 4, SECOND // 4 + 1, SECOND // 2)
    asked = [down.open(up.seal(b""), now) for now in times]

    assert GREETS_PER_S_MAX == 4
    assert asked == [
        *(Greet(0xA1, sequence) for sequence in (1, 2, 3, 4)),
        Reject(FrameFault.ECHO),
        Greet(0xA1, 6),
        Reject(FrameFault.ECHO),
        Greet(0xA1, 8),
    ]


def forged(boot: int) -> bytes:
    sealed = bytearray(child(0xAA).seal(b""))
    sealed[8:16] = boot.to_bytes(8, "big")
    return bytes(sealed)


def test_new_boot_ids_cost_so_many_derivations_a_second() -> None:
    up, down = child(0xA1), parent(0xB1)
    meet(up, down)

    reasons = [down.open(forged(1_000 + n), SECOND) for n in range(DERIVATIONS_PER_S_MAX + 2)]
    assert reasons == [
        *[Reject(FrameFault.FORGED)] * DERIVATIONS_PER_S_MAX,
        *[Reject(FrameFault.BUDGET)] * 2,
    ]
    again = 2 * SECOND
    assert down.open(forged(9_999), again) == Reject(FrameFault.FORGED)
    assert_they_talk(up, down, again)


def test_whoever_forges_boot_ids_elsewhere_keeps_no_restarted_process_out() -> None:
    meet(child(0xA1), down := parent(0xB1))

    for second in range(1, 11):
        now = second * SECOND
        for number in range(2 * DERIVATIONS_PER_S_MAX):
            refused = down.open(forged(10_000 * second + number), now, Origin.ELSEWHERE)
        assert refused == Reject(FrameFault.BUDGET)
        again = child(0x1_0000_0000 + second)
        assert isinstance(greet := down.open(again.seal(b""), now), Greet)
        assert isinstance(again.open(down.seal_hi(greet), now), Opened)
        assert isinstance(down.open(again.seal(b"here"), now), Opened)


def test_two_hundred_boot_ids_a_second_forged_from_its_address_keep_it_out_neither() -> None:
    meet(child(0xA1), down := parent(0xB1))

    for second in range(1, 11):
        now = second * SECOND
        for number in range(200):
            down.open(forged(10_000 * second + number), now, Origin.ON_RECORD)
        again = child(0x1_0000_0000 + second)
        assert isinstance(greet := down.open(again.seal(b""), now), Greet)
        assert isinstance(again.open(down.seal_hi(greet), now), Opened)


def test_a_saved_boot_id_costs_no_derivation_of_the_budget() -> None:
    meet(child(0xA1), parent(0xB1))
    up, down = child(0xA1), parent(0xB2, saved=0xA1)
    strangers = [child(boot, agreement=replace(AGREEMENT, secret=bytes(32))) for boot in (7, 8, 9)]
    for stranger in strangers:
        assert isinstance(down.open(stranger.seal(b""), 0), Reject)

    assert isinstance(down.open(up.seal(b""), 0), Greet)


@pytest.mark.parametrize(
    "other",
    [
        replace(AGREEMENT, secret=bytes(32)),
        replace(AGREEMENT, cluster=UUID(int=0xC2)),
        replace(AGREEMENT, node=UUID(int=0x0E)),
        replace(AGREEMENT, incarnation=4),
    ],
)
def test_who_agreed_on_something_else_is_not_authentic(other: Agreement) -> None:
    assert parent(0xB1).open(child(0xA1, agreement=other).seal(b""), 0) == Reject(FrameFault.FORGED)


def test_what_is_for_another_session_or_sealed_otherwise_is_refused() -> None:
    down = parent(0xB1)
    sealed = child(0xA1).seal(b"")

    def changed(at: int, value: int) -> bytes:
        return sealed[:at] + bytes([value]) + sealed[at + 1 :]

    assert down.open(changed(0, 2), 0) == Reject(FrameFault.VERSION)
    assert down.open(changed(1, 9), 0) == Reject(FrameFault.TYPE)
    assert down.open(changed(2, 9), 0) == Reject(FrameFault.SUITE)
    assert down.open(changed(2, Suite.AES_256_GCM), 0) == Reject(FrameFault.SUITE)
    assert down.open(changed(3, 2), 0) == Reject(FrameFault.EPOCH)
    assert down.open(changed(7, 9), 0) == Reject(FrameFault.INDEX)
    assert down.open(sealed[:55], 0) == Reject(FrameFault.LENGTH)
    assert down.open(sealed + bytes(1200), 0) == Reject(FrameFault.LENGTH)


def test_what_one_sent_oneself_is_not_taken_for_the_others() -> None:
    agreement = replace(AGREEMENT, parent_index=5, child_index=5)
    up = child(0xA1, agreement=agreement)

    assert up.open(up.seal(b"mirror"), 0) == Reject(FrameFault.FORGED)


def test_the_largest_body_makes_the_largest_datagram() -> None:
    up, down = child(0xA1), parent(0xB1)
    meet(up, down)
    body = bytes(BODY_BYTES_MAX)

    sealed = up.seal(body)
    assert len(sealed) == 1200
    assert down.open(sealed, 0) == opened(body, 0xA1)
    with pytest.raises(AssertionError):
        up.seal(body + b"!")


@settings(max_examples=200)
@given(st.sampled_from(Suite), st.integers(0, 71 * 8 - 1))
def test_no_bit_can_be_changed(suite: Suite, bit: int) -> None:
    agreement = replace(AGREEMENT, suite=suite)
    up, down = child(0xA1, agreement=agreement), parent(0xB1, agreement=agreement)
    meet(up, down)
    sealed = up.seal(b"fifteen letters")
    assert len(sealed) == 71

    flipped = bytearray(sealed)
    flipped[bit // 8] ^= 1 << bit % 8

    assert isinstance(down.open(bytes(flipped), 0), Reject)
    assert down.open(sealed, 0) == opened(b"fifteen letters", 0xA1)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_refused(noise: bytes, addressed: bool) -> None:
    up, down = child(0xA1), parent(0xB1)
    meet(up, down)
    if addressed:
        noise = up.seal(b"")[:24] + noise

    assert isinstance(down.open(noise, 0), Reject)
    assert_they_talk(up, down, 0)


@given(st.integers(0, 70))
def test_a_truncated_datagram_is_refused(length: int) -> None:
    up, down = child(0xA1), parent(0xB1)
    meet(up, down)

    assert isinstance(down.open(up.seal(b"fifteen letters")[:length], 0), Reject)
