"""Many calls at a time: all answers in their order, or the first refusal as it is."""

import pytest

from haptera.cli.input.many import AT_ONCE, ask_all
from haptera.client import Access, RefusedError, calls
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare
from haptera.model.entity import node_id
from tests.api.serving import serving
from tests.cli.test_commands import point_at, typed

NODES = [node_id(f"n{number:02}") for number in range(2 * AT_ONCE + 1)]

pytestmark = pytest.mark.net


@pytest.fixture
def cluster():
    with serving(*(Declare(one, {}, "site") for one in NODES)) as one:
        yield one


def test_answers_come_in_the_order_of_what_was_asked(cluster):
    asked = [calls.entity(str(one)) for one in reversed(NODES)]
    answers = ask_all(Access(cluster.url, "read-token"), asked)
    assert [one.entity for one in answers] == [str(one) for one in reversed(NODES)]


def test_a_refusal_is_raised_as_it_is(cluster):
    asked = [calls.entity("node:n01"), calls.entity("node:n99")]
    with pytest.raises(RefusedError, match="there is no node:n99"):
        ask_all(Access(cluster.url, "read-token"), asked)


def test_each_of_many_is_tried_again_once(cluster, capsys, monkeypatch, tmp_path):
    point_at(cluster.url, "write-token", monkeypatch, tmp_path)
    for one in NODES:
        cluster.do(cluster.backend.say, one, condition=Condition.STUCK)
    assert typed(capsys, "retry", "n*")[1] == "node:n[00-32] are retried now\n"
    assert sorted(cluster.backend.asked) == NODES
