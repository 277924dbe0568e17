"""A stranger in the place of etcd: no answer lets a parent act longer than it may."""

import msgspec
import pytest

from haptera.core.safety.tenure import LeaseSeeker
from haptera.daemon.tree.leased import LeaseInEtcd
from haptera.model.errors import HapteraError
from haptera.runtime.clock import now_ns

S = 1_000_000_000
LENGTH_S = 6
FREE = {"responses": [{"response_range": {}}, {"response_range": {}}]}


class Answering:
    """An etcd that gives these answers, one after the other, by their paths."""

    prefix, lease_s = "haptera", LENGTH_S

    def __init__(self, *answers):
        self.answers = [*answers]

    def ask(self, _path, _body, gives):
        return msgspec.convert(self.answers.pop(0), gives)


def seeker(*answers):
    return LeaseInEtcd(Answering(*answers), "small", LeaseSeeker("a", 0, 0))


def held(*later):
    """One that has the lease, and what it is answered from then on."""
    one = seeker(FREE, {"ID": "7", "TTL": "6"}, {"succeeded": True}, *later)
    assert one.take() is None
    return one


def left_s(one):
    return one.tenure.left_ns(now_ns()) / S


def test_no_answer_makes_a_lease_longer_than_was_asked_for():
    one = seeker(FREE, {"ID": "7", "TTL": "999999999"}, {"succeeded": True})
    assert one.take() is None
    assert 0 < left_s(one) <= LENGTH_S
    one = held({"result": {"ID": "7", "TTL": "999999999"}})
    one.renew()
    assert 0 < left_s(one) <= LENGTH_S


@pytest.mark.parametrize("ttl", ["", "-1", "x", "1_0", "6.5", "٣", "9" * 5_000, "0"])
def test_a_length_that_is_none_grants_nothing(ttl):
    one = seeker(FREE, {"ID": "7", "TTL": ttl}, {"succeeded": True})
    with pytest.raises(HapteraError):
        one.take()
    assert left_s(one) == 0


@pytest.mark.parametrize("answer", [{"ID": "8", "TTL": "6"}, {"ID": "", "TTL": "6"}])
def test_the_renewal_of_another_lease_renews_nothing(answer):
    one = held({"result": answer})
    until = one.tenure.until
    with pytest.raises(HapteraError, match="another lease"):
        one.renew()
    assert one.tenure.until == until


@pytest.mark.parametrize(
    "answer", [{}, {"responses": []}, {"responses": [{}]}, {"responses": [{}] * 3}]
)
def test_an_answer_to_another_question_lets_nobody_act(answer):
    one = seeker(answer)
    with pytest.raises(HapteraError, match="answers something else"):
        one.take()
    assert left_s(one) == 0


@pytest.mark.parametrize("holder", [b"b", b"\xff\xfe", b"a\0"])
def test_whoever_else_is_named_has_the_lease(holder):
    one = seeker({"responses": [{"response_range": {"kvs": [{"value": holder}]}}, {}]})
    assert "holds the lease" in str(one.take())


@pytest.mark.parametrize("term", [b"x b", b"", b"-1 b", "٣ b".encode(), b"9" * 5_000])
def test_a_term_that_is_none_ends_nobody(term):
    kvs = [{"response_range": {}}, {"response_range": {"kvs": [{"value": term}]}}]
    one = seeker({"responses": kvs}, {"ID": "7", "TTL": "6"}, {"succeeded": False})
    assert one.take() == "another one was faster"
