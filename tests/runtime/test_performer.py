"""What an engine wants done goes to the one who does it, in its order."""

from dataclasses import fields
from functools import partial
from typing import get_args

import pytest

from haptera.model.effects import (
    Call,
    Cancel,
    Effect,
    FetchList,
    FetchSchema,
    PlanReply,
    Publish,
    Recall,
    Reply,
    RequestRetry,
    SaveDesired,
    SearchPlan,
    Start,
    Stop,
    StopStep,
    Tell,
    Work,
    Write,
)
from haptera.model.entity import node_id
from haptera.model.events import Event, Exited, Failed, PlanFailed
from haptera.model.messages import Mark, Message
from haptera.runtime.performer import Performer, never, nobody

N1 = node_id("n1")
MESSAGE = Message(1, 1, 1, Mark(), Mark())
DONE: list[tuple[str, Effect]] = [
    ("write", Write(1, ())),
    ("start", Start("power")),
    ("call", Call(1, Work.LOOK, "power", "look", N1, {}, {}, "", None)),
    ("cancel", Cancel(1, "power")),
    ("cancel", StopStep(1, "power")),
    ("stop", Stop("power", 1)),
    ("tell", Tell("n1", MESSAGE)),
    ("keep", SaveDesired(1, 1, ())),
    ("ask", FetchList("n1")),
    ("ask", FetchSchema("n1")),
    ("ask", Recall("n1", (N1,))),
    ("ask", RequestRetry("n1", N1)),
    ("search", SearchPlan(1, {}, {}, (), (), {}, {}, {}, (), (), 1, 1)),
    ("answer", Reply(1, 1)),
    ("answer", PlanReply(1, None)),
    ("publish", Publish((N1,), ())),
]


def test_each_effect_is_carried_out_by_the_one_who_does_such_in_its_order() -> None:
    done: list[tuple[str, object]] = []

    def noted(by: str, *what: object) -> None:
        done.append((by, Tell(*what) if by == "tell" else what[0]))

    performer = Performer(**{one.name: partial(noted, one.name) for one in fields(Performer)})
    performer.perform(effect for _, effect in DONE)
    assert done == DONE


@pytest.mark.parametrize(("by", "effect"), DONE)
def test_an_effect_that_cannot_be_carried_out_is_the_only_one(by: str, effect: Effect) -> None:
    done: list[object] = []
    heard: list[Event] = []

    def broken(*_: object) -> None:
        raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")

    others = {one.name: lambda *what: done.append(what[0]) for one in fields(Performer)}
    performer = Performer(**{**others, by: broken})
    after = Tell("n2", MESSAGE) if by != "tell" else Cancel(2, "power")
    perform = performer.each(heard.extend)
    if by in ("write", "keep"):
        with pytest.raises(UnicodeEncodeError):
            perform([effect, after])
        return
    perform([effect, after])
    assert len(done) == 1
    words = "UnicodeEncodeError: 'utf-8' codec can't encode character '\\ud800' in position 0:"
    expected = {
        "call": Failed(1, f"{words} surrogates not allowed"),
        "start": Exited("power", f"was not started: {words} surrogates not allowed"),
        "search": PlanFailed(1, f"{words} surrogates not allowed"),
    }
    assert heard == [expected[by] for _ in [by] if by in expected]


def test_what_an_engine_cannot_want_ends_it() -> None:
    others = {one.name: nobody for one in fields(Performer)}
    with pytest.raises(AssertionError):
        Performer(**{**others, "ask": never}).each(nobody)([FetchList("n1")])


def test_all_effects_that_there_are_were_tried() -> None:
    assert {type(effect) for _, effect in DONE} == set(get_args(Effect))
