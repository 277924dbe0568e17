"""What an engine wants done goes to the one who does it, in its order."""

from dataclasses import fields
from functools import partial
from typing import get_args

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
from haptera.model.messages import Mark, Message
from haptera.runtime.performer import Performer

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


def test_all_effects_that_there_are_were_tried() -> None:
    assert {type(effect) for _, effect in DONE} == set(get_args(Effect))
