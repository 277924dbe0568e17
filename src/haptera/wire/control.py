"""What a controller and its daemon say to each other, as values; each is one frame."""

from typing import Any

import msgspec

from haptera.model.answers.views import EntityView
from haptera.model.news import News
from haptera.wire.frame import FrameFault, Reject

Frame = dict[str, Any]


class _Said(msgspec.Struct, frozen=True, gc=False, tag_field="op"):
    id: int


class Watch(_Said, frozen=True, gc=False, tag="watch"):
    """Tell me of such changes, under this id; a snapshot first. None stands for all."""

    types: list[str] | None
    kinds: list[str] | None
    select: str | None


class Next(_Said, frozen=True, gc=False, tag="next"):
    """The news under this id were received; send more, when there is more."""


class Unwatch(_Said, frozen=True, gc=False, tag="unwatch"):
    """Tell me no more under this id."""


class ReadEntities(_Said, frozen=True, gc=False, tag="read"):
    """Tell me how these entities are: those that come after this one, None for the first."""

    select: str
    after: str | None


class WriteDesired(_Said, frozen=True, gc=False, tag="write"):
    """Have this desired, all or nothing; None for a value stands for nothing desired of it.

    `declare` gives attributes. With `if_revision`, only if nothing that is desired changed since.
    With an `owner`, values are set and unset in the name of that user.
    """

    desired: dict[str, dict[str, str | int | None]]
    declare: dict[str, dict[str, str]]
    undeclare: list[str]
    if_revision: int | None
    owner: str | None = None


class ControlTold(_Said, frozen=True, gc=False, tag="told"):
    """What changed; `fresh` begins a snapshot. `cursor` is nil until the picture is whole.

    Then it is as it was at `revision`, or newer: what is written with that as `if_revision` was
    decided on all that was desired by then.
    """

    fresh: bool
    entities: list[EntityView]
    types: dict[str, list[News]]
    gone: list[str]
    cursor: str | None
    revision: int


class Views(_Said, frozen=True, gc=False, tag="views"):
    """How they are; where `after` is given, there are more after it."""

    entities: list[EntityView]
    after: str | None
    revision: int


class WrittenAt(_Said, frozen=True, gc=False, tag="written"):
    """It is durable, at this revision."""

    revision: int


class WriteRefused(_Said, frozen=True, gc=False, tag="refused"):
    """It was not done; a `conflict` where something that is there stands against it."""

    text: str
    conflict: bool


Request = Watch | Next | Unwatch | ReadEntities | WriteDesired
Answer = ControlTold | Views | WrittenAt | WriteRefused


def frame_of(said: Request | Answer) -> Frame:
    """The frame that says it."""
    frame: Frame = msgspec.to_builtins(said)
    return frame


def parse_request(frame: Frame) -> Request | Reject:
    """What a controller asks for; keys that are not known are skipped."""
    parsed: Request | Reject = _parsed(frame, Request)
    return parsed


def parse_answer(frame: Frame) -> Answer | Reject:
    """What a daemon answers a controller."""
    parsed: Answer | Reject = _parsed(frame, Answer)
    return parsed


def _parsed(frame: Frame, shape: Any) -> Any:
    try:
        return msgspec.convert(frame, shape)
    except (msgspec.ValidationError, RecursionError):
        return Reject(FrameFault.FRAME)
