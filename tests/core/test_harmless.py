"""Steps that disturbed nobody count in no hour, here and above; what may have disturbed does."""

import dataclasses

from msgspec.structs import replace

from haptera.core.act.outcome import changed_nothing
from haptera.core.safety.room import RoomAsks
from haptera.core.state.limits import MS
from haptera.core.state.side import Side
from haptera.model.changes import Desired, Disruption, StoredEntity
from haptera.model.effects import Work
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Ended, Enrolled, Failed, Written
from haptera.model.messages import Permit, RoomAsk
from haptera.model.parts import Change, Context, Look, Manifest, Step
from tests.core.test_gate import JOBS, Agent
from tests.core.test_safety import BMC, H, Rig

FULL = "the budget of node n01 allows 3 an hour"
TWICE = tuple(Disruption(node_id("n01"), at * MS, "boot") for at in (1, 2))
COMPUTE = EntityId("system", "compute", "n01")
ASKED = RoomAsk("b2-1", COMPUTE, late_ms=1_000)


def without_effect() -> Rig:
    """A BMC that accepts each command to a node that was disturbed twice, and carries none out."""
    return Rig(("n01",), disruptions=TWICE, finds={"look": "on"})


def until_called(rig: Rig) -> None:
    while not rig.called:
        rig.run(0.1)


def test_a_command_without_effect_counts_in_no_hour_once_the_nodes_agent_has_lived_through_it() -> (
    None
):
    rig = without_effect()
    rig.run(600)
    assert len(rig.called) > 3
    assert FULL not in str(rig.why("n01"))


def test_what_is_taken_back_is_so_on_disk_once_for_the_parent_that_starts_next() -> None:
    rig = without_effect()
    until_called(rig)
    rig.run(600)
    assert rig.kept[:6] == [True, False] * 3


def test_what_may_have_disturbed_is_left_on_disk() -> None:
    rig = without_effect()
    until_called(rig)
    rig.run(1)
    rig._tell([Enrolled("n01", 2)])
    rig.run(600)
    assert rig.kept == [True]


def test_only_a_reading_after_its_last_effect_shows_that_a_step_changed_nothing() -> None:
    rig = without_effect()
    until_called(rig)
    row = rig.engine.table.get(node_id("n01"))
    assert row is not None
    stepping, read = row.work.stepping, row.belief.known["power"]
    assert stepping is not None
    assert read.at < stepping.settled_at
    assert not changed_nothing(row, stepping)
    row.belief.known["power"] = replace(read, at=stepping.settled_at)
    assert changed_nothing(row, stepping)


def test_a_node_that_is_on_as_before_but_has_booted_meanwhile_was_disturbed() -> None:
    rig = without_effect()
    until_called(rig)
    rig.run(1)
    rig._tell([Enrolled("n01", 2)])
    rig.run(600)
    assert len(rig.called) == 1
    assert str(rig.why("n01")).startswith(f"bmc.switch_off waits: {FULL}")


def test_a_node_that_boots_after_its_outcome_was_read_was_disturbed() -> None:
    rig = without_effect()
    until_called(rig)
    rig.silent.add("n01")
    rig.run(6)
    row = rig.engine.table.get(node_id("n01"))
    assert row is not None
    assert row.work.stepping is None
    rig.silent.clear()
    rig._tell([Enrolled("n01", 2)])
    rig.run(600)
    assert len(rig.called) == 1


def test_a_node_whose_agent_is_not_heard_any_more_may_have_been_disturbed() -> None:
    """Its power is on; but the machine may have shut down but for that."""
    rig = Rig(("n01",), disruptions=TWICE, finds={"look": "on"}, attributes={"if_lost": "recover"})
    until_called(rig)
    rig.silent.add("n01")
    rig.run(900)
    assert len(rig.called) == 1
    assert FULL in str(rig.why("n01"))


def test_what_disturbs_nobody_by_its_nature_takes_nothing_back() -> None:
    step = dataclasses.replace(BMC.steps[0], disruptive=False)
    for refuses in (None, "no privilege"):
        rig = Rig(
            ("n01",),
            finds={"look": "on"},
            refuses=refuses,
            modules=(dataclasses.replace(BMC, steps=(step,)),),
        )
        rig.run(20)
        row = rig.engine.table.get(node_id("n01"))
        assert row is not None
        assert rig.called
        assert row.work.harmless is None


def said(rig: Rig, *asks: RoomAsk) -> list[str]:
    """The answer of a parent to an agent that says this; none to what it grants."""
    rig.room_asks = asks
    rig.hello("n01")
    rig.run(0.1)
    return [one.text for one in rig.lent["n01"]]


def test_what_an_agent_took_back_counts_no_more_at_its_parent() -> None:
    rig = Rig(("n01",), desired=("none",))
    for number in range(4):
        asked = replace(ASKED, id=f"b2-{number}")
        assert said(rig, asked) == [""]
        assert said(rig, replace(asked, begun=True)) == [""]
        assert said(rig, replace(asked, begun=True, harmless=True)) == [], "it need not say more"


def test_what_an_agent_began_and_did_not_take_back_counts_at_its_parent() -> None:
    rig = Rig(("n01",), desired=("none",))
    for number in range(3):
        said(rig, replace(ASKED, id=f"b2-{number}", begun=True))
        said(rig)
    assert said(rig, replace(ASKED, id="b2-4")) == [f"{FULL}: room in 60 min"]
    rig.run(150)
    assert said(rig, replace(ASKED, id="b2-4")) == [f"{FULL}: room in 58 min"]


def test_one_that_was_harmless_is_taken_back_once_however_often_that_is_said() -> None:
    rig = Rig(("n01",), desired=("none",))
    first, *others = (replace(ASKED, id=f"b2-{number}", begun=True) for number in range(4))
    said(rig, first)
    for one in others:
        said(rig, replace(first, harmless=True), one)
        said(rig, replace(first, harmless=True))
    assert said(rig, replace(ASKED, id="b2-5")) == [f"{FULL}: room in 60 min"]


def agent() -> Agent:
    """An agent whose system runs, and should not; its step may begin."""
    run = Look("image", "look", "system", "run", ("stopped", "running"))
    stop = Step(
        "image", "stop", "system", (Change("run", ("running",), "stopped"),),
        within_ms=1_000, late_ms=1_000, disruptive=True,
    )  # fmt: skip
    image = Manifest("image", "1", Context.SELF, (run,), (stop,))
    wish = StoredEntity(COMPUTE, {}, "parent", {"run": Desired("stopped", "parent")}, 1)
    one = Agent(JOBS, image, others=(wish,))
    one.hear()
    look = next(call for call in one.calls if call.part == "look")
    release = next(call for call in one.calls if call.work is Work.RELEASE)
    one.tell(Ended(release.id), Answered(look.id, "running", one.now))
    one.hear()
    one.gate_calls()
    one.end()
    one.tell(*(Written(ticket, 2) for ticket in one.tickets))
    return one


def test_an_agent_says_what_was_harmless_until_its_parent_knows() -> None:
    one = agent()
    (asked,) = one.room_asks
    assert asked.begun
    call = next(call for call in one.calls if call.work is Work.STEP)
    one.tell(Failed(call.id, "the old one runs again", refused=True))
    (said,) = one.room_asks
    assert said == replace(asked, harmless=True)
    one.hear()
    one.pass_silently(2)
    assert [ask.id for ask in one.room_asks if ask.begun] == []


def test_a_parent_below_says_above_what_turns_out_to_be_harmless_after_its_end() -> None:
    """Its agent may be heard only then."""
    permits: tuple[Permit, ...] = ()
    side = Side(Context.PARENT, None, 1, "boot", H, name="m1")
    asks = RoomAsks(side, lambda _: permits, lambda: "m-1")
    asks.claim(COMPUTE, late_ms=0)
    asks.begins(COMPUTE)
    (begun,) = asks.standing()
    permits = (Permit(begun.id, granted=True),)
    asks.leave(COMPUTE)
    assert asks.standing() == ()
    asks.discount(COMPUTE)
    asks.settle(0)
    assert asks.standing() == (replace(begun, harmless=True),)
    asks.discount(COMPUTE)
    permits = ()
    asks.settle(0)
    assert asks.standing() == ()
