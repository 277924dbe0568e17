"""Carries out what an engine wants done: the one table of who does which effect."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import assert_never

from haptera.model.effects import (
    Call,
    Cancel,
    Effect,
    Errand,
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
    Write,
)
from haptera.model.events import Event, Exited, Failed, PlanFailed
from haptera.model.messages import Message
from haptera.sdk.boundary import Boundary


@dataclass(frozen=True, slots=True, kw_only=True)
class Performer:
    """Parents, agents and simulated processes differ only in whom they name here.

    None of these waits, so that effects keep their order; what comes of them is delivered later.
    """

    call: Callable[[Call], None]
    cancel: Callable[[Cancel | StopStep], None]
    start: Callable[[Start], None]
    stop: Callable[[Stop], None]
    write: Callable[[Write], None]
    keep: Callable[[SaveDesired], None]
    tell: Callable[[str, Message], None]
    ask: Callable[[Errand], None]
    search: Callable[[SearchPlan], None]
    answer: Callable[[Reply | PlanReply], None]
    publish: Callable[[Publish], None]

    def perform(self, effects: Iterable[Effect]) -> None:  # noqa: C901, PLR0912  one branch an effect
        """Carry these out, in their order."""
        for effect in effects:
            match effect:
                case Call():
                    self.call(effect)
                case Cancel() | StopStep():
                    self.cancel(effect)
                case Start():
                    self.start(effect)
                case Stop():
                    self.stop(effect)
                case Write():
                    self.write(effect)
                case SaveDesired():
                    self.keep(effect)
                case Tell(peer, message):
                    self.tell(peer, message)
                case FetchList() | FetchSchema() | Recall() | RequestRetry():
                    self.ask(effect)
                case SearchPlan():
                    self.search(effect)
                case Reply() | PlanReply():
                    self.answer(effect)
                case Publish():
                    self.publish(effect)
                case _:
                    assert_never(effect)

    def each(self, deliver: Callable[[list[Event]], None]) -> Callable[[Iterable[Effect]], None]:
        """As `perform`, but what goes wrong with an effect is its own: it came to nothing.

        Only what is to be durable ends all, for the engine goes by that: it is begun anew, from
        what the disk holds. So does what an engine cannot want.
        """

        def perform(effects: Iterable[Effect]) -> None:
            for effect in effects:
                if isinstance(effect, Write | SaveDesired):
                    self.perform((effect,))
                    continue
                with Boundary(f"effect {type(effect).__name__}", (AssertionError,)) as one:
                    self.perform((effect,))
                if one.fault is not None:
                    deliver(came_to_nothing(effect, one.fault))

        return perform


def came_to_nothing(effect: Effect, fault: str) -> list[Event]:
    """The events for an effect that could not be carried out, if the engine waits for any.

    A datagram is sent again, and an errand run again, when nothing is heard of it.
    """
    match effect:
        case Call(id):
            return [Failed(id, fault)]
        case Start(module, process):
            return [Exited(module, f"was not started: {fault}", process)]
        case SearchPlan(id):
            return [PlanFailed(id, fault)]
        case _:
            return []


def nobody(_: object) -> None:
    """For what nobody is there to hear."""


def never(effect: object) -> None:
    """For what the engine of such a process cannot want."""
    raise AssertionError(effect)
