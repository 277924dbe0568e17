"""A worker without a process: what it is asked and answers passes as bytes, as in life."""

from haptera.model.effects import SearchPlan
from haptera.model.events import PlanFound
from haptera.planner.plan_query import answer
from haptera.runtime.processes.ipc import Frame
from haptera.runtime.search.search_frames import (
    search_frame,
    search_of,
    searched_frame,
    searched_of,
)
from haptera.wire.frame import Reject
from haptera.wire.ipc import Frames, encode_frame


def searched(search: SearchPlan) -> PlanFound:
    """What a worker answers."""
    asked = search_of(carried(search_frame(search)))
    return searched_of(carried(searched_frame(answer(asked))))


def carried(frame: Frame) -> Frame:
    """The frame as its reader gets it, by way of its bytes."""
    frames = Frames().feed(encode_frame(frame))
    assert not isinstance(frames, Reject)
    return frames[0]
