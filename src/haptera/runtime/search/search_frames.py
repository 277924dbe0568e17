"""Frames between the daemon and a worker that searches: the question, and its answer."""

from typing import Any

import msgspec

from haptera.model.chain import NoChain, ToldChain
from haptera.model.effects import SearchPlan
from haptera.model.events import PlanFound

Frame = dict[str, Any]


def search_frame(search: SearchPlan) -> Frame:
    return {"op": "search", "search": msgspec.to_builtins(search)}


def search_of(frame: Frame) -> SearchPlan:
    """The question in a frame.

    Raises:
        ValueError: there is none.
    """
    match frame:
        case {"op": "search", "search": dict(search)}:
            return msgspec.convert(search, SearchPlan)
        case _:
            raise ValueError(f"a frame {frame.get('op')!r} is no question")


def searched_frame(searched: PlanFound) -> Frame:
    answer = searched.answer
    what = "none" if isinstance(answer, NoChain) else "chain"
    return {"op": "searched", "id": searched.search, what: msgspec.to_builtins(answer)}


def searched_of(frame: Frame) -> PlanFound:
    """The answer in a frame.

    Raises:
        ValueError: there is none.
    """
    match frame:
        case {"op": "searched", "id": int(search), "chain": dict(chain)}:
            return PlanFound(search, msgspec.convert(chain, ToldChain))
        case {"op": "searched", "id": int(search), "none": dict(none)}:
            return PlanFound(search, msgspec.convert(none, NoChain))
        case _:
            raise ValueError(f"it sent a frame {frame.get('op')!r} that is no answer")
