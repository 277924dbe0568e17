"""A token makes one key the node that it is bound to, once."""

from hypothesis import given
from hypothesis import strategies as st

from haptera.core.sync.admission import AdmissionReason, Admit, Refuse, Repeat, TokenRow, admit

FRESH = TokenRow("t1", "n01", expires_s=600.0)
CLAIMED = TokenRow("t1", "n01", expires_s=600.0, claimed_by=b"key")


def test_a_first_claim_is_admitted_as_the_node_that_the_token_is_bound_to() -> None:
    assert admit(FRESH, b"key", 599.9) == Admit("n01")


def test_no_token_is_no_admission() -> None:
    assert admit(None, b"key", 0.0) == Refuse(AdmissionReason.UNKNOWN)


def test_a_token_counts_until_it_expires_and_not_when() -> None:
    assert admit(FRESH, b"key", 600.0) == Refuse(AdmissionReason.EXPIRED)


def test_the_same_key_is_answered_again_as_its_answer_may_have_been_lost() -> None:
    assert admit(CLAIMED, b"key", 1.0) == Repeat("n01")


def test_another_key_is_a_double_claim() -> None:
    assert admit(CLAIMED, b"other", 1.0) == Refuse(AdmissionReason.DOUBLE)


def test_a_claim_whose_session_is_in_use_is_not_answered_again() -> None:
    spent = TokenRow("t1", "n01", expires_s=600.0, claimed_by=b"key", spent=True)
    assert admit(spent, b"key", 1.0) == Refuse(AdmissionReason.SPENT)


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.floats(0, 1200)), max_size=20))
def test_however_it_is_tried_only_the_first_key_gets_in_and_only_in_time(
    claims: list[tuple[bytes, float]],
) -> None:
    token, admitted = FRESH, set()
    for key, wall_s in claims:
        match admit(token, key, wall_s):
            case Admit():
                token = TokenRow(token.id, token.node, token.expires_s, claimed_by=key)
                admitted.add(key)
            case Repeat():
                assert admitted == {key}
            case Refuse(reason):
                assert (reason is AdmissionReason.EXPIRED) == (wall_s >= token.expires_s)
    in_time = [key for key, wall_s in claims if wall_s < token.expires_s]
    assert admitted == set(in_time[:1])
