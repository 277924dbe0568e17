"""On an agent: when the gates of its node close, what is permitted, and when they open again."""

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.core.state.side import PARENT, Side
from haptera.kinds import KINDS
from haptera.model.changes import Desired, Stored, StoredEntity
from haptera.model.effects import Call, Start, Tell, Work, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Answered,
    Ended,
    Enrolled,
    Event,
    Exited,
    Failed,
    Heard,
    Ready,
    Ticked,
    Written,
)
from haptera.model.messages import Ask, Mark, Message, Permit, RoomAsk
from haptera.model.parts import Change, Context, Look, Manifest, Step

H = 1 * S
JOBS = Manifest("jobs", "1", Context.SELF, (), (), gate=True)
SLURM = Manifest("slurm", "1", Context.SELF, (), (), gate=True)
OFF = Ask("a1-1", "bmc.switch_off", 4_000)
BOOT = 5


class Agent:
    """An agent's engine: what it asks of its gates, and what it says of permits."""

    def __init__(
        self,
        *modules: Manifest,
        attributes: dict[str, str] | None = None,
        others: tuple[StoredEntity, ...] = (),
    ) -> None:
        side = Side(Context.SELF, "n01", 0xB2, "boot", H)
        node = StoredEntity(node_id("n01"), attributes or {}, "parent", {}, 1)
        stored = Stored(7, 1, [node, *others], [], {})
        self.engine = Engine(side, Catalog(KINDS, modules), stored, 0, S)
        self.now = S
        self.calls: list[Call] = []
        self.tickets: list[int] = []
        self.said: tuple[Permit, ...] = ()
        self.room_asks: tuple[RoomAsk, ...] = ()
        self.tell(Ticked(), Enrolled(PARENT, 1))

    def tell(self, *events: Event, after_s: float = 0.01) -> None:
        self.now += int(after_s * S)
        for effect in self.engine.handle(events, self.now):
            match effect:
                case Start(module, process):
                    self.tell(Ready(module, process))
                case Call():
                    self.calls.append(effect)
                case Write(ticket):
                    self.tickets.append(ticket)
                case Tell(_, message):
                    self.said = message.permits or ()
                    self.room_asks = message.room_asks or ()
                case _:
                    pass

    def hear(self, *asks: Ask, after_s: float = 0.01, refusal: str | None = None) -> None:
        """The parent says hello, asks this, and lends room for all it is asked, or says why not."""
        asked = [one for one in self.room_asks if not one.harmless]
        lent = tuple(Permit(one.id, refusal is None, refusal or "") for one in asked)
        message = Message(1, 0, 0, Mark(), Mark(), asks=asks, permits=lent)
        self.tell(Heard(PARENT, BOOT, message, self.now), after_s=after_s)

    def gate_calls(self) -> list[tuple[str, Work]]:
        """What gates were asked since this was last asked, answered in order by `end`."""
        calls, self.calls = self.calls, []
        self.open = calls
        return [(call.module, call.work) for call in calls]

    def end(self, *refusals: str | None) -> None:
        """The calls just seen end; with a text, the gate refuses."""
        for call, refusal in zip(self.open, refusals or (None,) * len(self.open), strict=True):
            self.tell(Ended(call.id) if refusal is None else Failed(call.id, refusal, refused=True))

    def pass_silently(self, seconds: float) -> None:
        end = self.now + int(seconds * S)
        while self.now < end:
            due = self.engine.deadline() or end
            self.tell(Ticked(), after_s=(max(self.now + MS, min(end, due)) - self.now) / S)


def test_a_node_boots_closed_and_is_opened_when_its_parent_asks_for_nothing() -> None:
    agent = Agent(JOBS)
    agent.pass_silently(3)
    assert agent.gate_calls() == []
    agent.hear()
    assert agent.gate_calls() == [("jobs", Work.RELEASE)]


def test_a_permit_is_given_once_all_gates_are_closed_and_ends_with_the_ask() -> None:
    agent = Agent(JOBS, SLURM)
    agent.hear(OFF)
    assert agent.gate_calls() == [("jobs", Work.HOLD), ("slurm", Work.HOLD)]
    assert agent.said == ()
    agent.end()
    assert agent.said == (Permit("a1-1", granted=True),)
    agent.hear()
    assert agent.said == ()
    assert agent.gate_calls() == [("jobs", Work.RELEASE), ("slurm", Work.RELEASE)]


def test_a_gate_that_refuses_says_why_and_is_asked_again_for_the_next_ask() -> None:
    agent = Agent(JOBS)
    agent.hear(OFF)
    assert agent.gate_calls() == [("jobs", Work.HOLD)]
    agent.end("2 jobs run")
    assert agent.said == (Permit("a1-1", granted=False, text="jobs: 2 jobs run"),)
    agent.hear()
    # It may have refused to begin at all, and be closed since the node booted.
    agent.tell(Ticked(), after_s=60)
    assert agent.gate_calls() == [("jobs", Work.RELEASE)]
    agent.end()
    again = Ask("a1-2", "bmc.switch_off", 4_000)
    agent.hear(again)
    assert agent.gate_calls() == [("jobs", Work.HOLD)]
    agent.end()
    assert agent.said == (Permit("a1-2", granted=True),)


def test_where_no_gate_is_nothing_is_permitted_unless_the_node_is_never_busy() -> None:
    agent = Agent()
    agent.hear(OFF)
    assert [one.granted for one in agent.said] == [False]
    quiet = Agent(attributes={"jobs": "none"})
    quiet.hear(OFF)
    assert quiet.said == (Permit("a1-1", granted=True),)


def test_a_gate_whose_module_is_left_alone_refuses_and_says_so() -> None:
    agent = Agent(JOBS)
    agent.hear(OFF)
    assert agent.gate_calls() == [("jobs", Work.HOLD)]
    for process in range(1, 7):
        agent.tell(Exited("jobs", "was killed", process))
        agent.tell(Ticked(), after_s=60)
    agent.hear(OFF)
    assert agent.said == (
        Permit(
            "a1-1", False, "module jobs has failed: was killed; it failed 6 times within 10 min"
        ),
    )


def test_what_a_gate_was_asked_is_over_when_its_module_dies() -> None:
    agent = Agent(JOBS)
    agent.hear(OFF)
    assert agent.gate_calls() == [("jobs", Work.HOLD)]
    agent.tell(Exited("jobs", "was killed"))
    assert not agent.engine.hands.calls.are_lost
    agent.end()  # What it answered before counts for nothing.
    assert agent.said == ()


def test_a_permit_is_withdrawn_while_its_gate_is_opened_closed_or_gone() -> None:
    agent = Agent(JOBS)
    agent.hear(OFF)
    agent.gate_calls()
    agent.end()
    assert agent.said == (Permit("a1-1", granted=True),)
    agent.tell(Exited("jobs", "was killed"))
    assert agent.said == ()
    agent.pass_silently(5)
    agent.hear(OFF)
    assert agent.gate_calls() == [("jobs", Work.HOLD)]
    agent.hear()  # asked while the gate is being closed for an ask that is over by now
    agent.end()
    assert agent.said == ()
    assert agent.gate_calls() == [("jobs", Work.RELEASE)]
    agent.hear(OFF)  # and while it is being opened: it counts as neither
    assert agent.said == ()


def test_a_lost_parent_s_permit_is_withdrawn_at_once_and_kept_until_it_can_do_no_harm() -> None:
    agent = Agent(JOBS)
    agent.hear(OFF)
    agent.gate_calls()
    agent.end()
    agent.pass_silently(3.5)
    assert agent.said == (Permit("a1-1", granted=True),)
    agent.pass_silently(1)
    assert agent.said == ()
    agent.pass_silently(2 + 4 - 0.9)
    assert agent.gate_calls() == []
    agent.pass_silently(1)
    assert agent.gate_calls() == [("jobs", Work.RELEASE)]


def test_a_parent_that_comes_back_in_time_finds_the_gate_closed() -> None:
    agent = Agent(JOBS)
    agent.hear(OFF)
    agent.gate_calls()
    agent.end()
    agent.pass_silently(5)
    agent.hear(OFF)
    assert agent.said == (Permit("a1-1", granted=True),)
    assert agent.gate_calls() == []


def test_a_gate_that_does_not_answer_is_asked_again() -> None:
    agent = Agent(JOBS)
    agent.hear(OFF)
    assert agent.gate_calls() == [("jobs", Work.HOLD)]
    agent.pass_silently(3)
    agent.hear(OFF)
    agent.pass_silently(2)
    assert agent.gate_calls() == [("jobs", Work.HOLD)]
    assert agent.said == (Permit("a1-1", granted=False, text="jobs: no answer within 2 s"),)


def test_what_the_agent_itself_does_that_may_harm_waits_for_the_same_gates() -> None:
    run = Look("image", "look", "system", "run", ("stopped", "running"))
    stop = Step(
        "image",
        "stop",
        "system",
        (Change("run", ("running",), "stopped"),),
        within_ms=1_000,
        late_ms=1_000,
        disruptive=True,
    )
    image = Manifest("image", "1", Context.SELF, (run,), (stop,))
    web = EntityId("system", "web", "n01")
    wish = StoredEntity(web, {}, "parent", {"run": Desired("stopped", "parent")}, 1)
    agent = Agent(JOBS, image, others=(wish,))
    agent.hear()
    (look,) = [one for one in agent.calls if one.part == "look"]
    (release,) = [one for one in agent.calls if one.work is Work.RELEASE]
    agent.calls.clear()
    agent.tell(Ended(release.id), Answered(look.id, "running", agent.now))
    (ask,) = agent.room_asks
    assert ask == RoomAsk(ask.id, web, late_ms=2_000)
    agent.hear(refusal="the budget is used up")
    assert agent.gate_calls() == []  # and jobs may begin meanwhile
    agent.hear()
    assert agent.gate_calls() == [("jobs", Work.HOLD)]
    agent.hear()  # the parent asks for nothing: that opens no gate that is held for ourselves
    assert agent.calls == []
    agent.end()
    assert [(one.module, one.part) for one in agent.calls] == []
    agent.tell(*(Written(one, 2) for one in agent.tickets))
    assert [(one.module, one.part) for one in agent.calls] == [("image", "stop")]
    assert agent.room_asks == (RoomAsk(ask.id, web, late_ms=2_000, begun=True),)
