"""What a controller and its daemon say: whatever comes in is a request, an answer, or refused."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.wire import control
from haptera.wire.control import frame_of, parse_answer, parse_request
from haptera.wire.frame import FrameFault, Reject

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
OPS = ("watch", "next", "unwatch", "read", "write", "told", "views", "written", "refused")
KEYS = ("id", "types", "kinds", "select", "after", "desired", "declare", "undeclare", "cursor")
FRAMES = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), VALUES, max_size=6)

REQUESTS = [
    control.Watch(1, ["desired"], None, "node:n1"),
    control.Next(1),
    control.Unwatch(1),
    control.ReadEntities(2, "*", "node:n1"),
    control.WriteDesired(3, {"node:n1": {"power": None}}, {}, ["node:n2"], if_revision=4),
]
ANSWERS = [
    control.ControlTold(1, True, [], {}, ["node:n1"], None, 3),
    control.Views(2, [], None, 3),
    control.WrittenAt(3, 5),
    control.WriteRefused(4, "there is no node:n9", conflict=False),
]


@pytest.mark.parametrize("said", REQUESTS)
def test_a_request_is_understood(said: control.Request) -> None:
    assert parse_request(carried(said)) == said
    assert parse_answer(carried(said)) == Reject(FrameFault.FRAME)


@pytest.mark.parametrize("said", ANSWERS)
def test_an_answer_is_understood(said: control.Answer) -> None:
    assert parse_answer(carried(said)) == said
    assert parse_request(carried(said)) == Reject(FrameFault.FRAME)


def test_keys_that_are_not_known_are_skipped_and_missing_ones_refused() -> None:
    assert parse_request({"op": "next", "id": 1, "why": "not"}) == control.Next(1)
    assert parse_request({"op": "next"}) == Reject(FrameFault.FRAME)
    assert parse_request({"op": "read", "id": 1, "select": 7, "after": None}) == Reject(
        FrameFault.FRAME
    )


@given(FRAMES, st.sampled_from(OPS) | VALUES)
def test_whatever_comes_is_understood_or_refused(frame: dict[str, object], op: object) -> None:
    for parse in (parse_request, parse_answer):
        parse({**frame, "op": op})
        parse(frame)


def carried(said: control.Request | control.Answer) -> dict[str, object]:
    packed = msgspec.msgpack.encode(frame_of(said))
    return msgspec.msgpack.decode(packed, type=dict[str, object])
