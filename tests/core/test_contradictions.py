"""Who desires what contradicts what stands is told so at once, and how to do both."""

from haptera.core.state.limits import S
from haptera.model.changes import Change, SetDesired, UnsetDesired
from haptera.model.effects import Effect, Reply, Write
from haptera.model.entity import node_id
from haptera.model.events import Proposed
from tests.core.scenario import parent, stored, told

NODE = node_id("n01")
UP = {"power": "on", "agent": "up"}


def proposed(*changes: Change, desired: dict[str, str] | None = None) -> list[Effect]:
    engine = parent(stored(desired=UP if desired is None else desired))
    effects = told(engine, S, Proposed(9, changes))
    return [one for one in effects if isinstance(one, Reply | Write)]


def off(owner: str) -> SetDesired:
    return SetDesired(NODE, "power", "off", owner)


def test_a_node_whose_agent_is_desired_up_is_not_taken_to_be_switched_off() -> None:
    (reply,) = proposed(off("user:eve"))
    assert isinstance(reply, Reply)
    assert reply.refusal == (
        "node:n01: agent=up cannot be known together with power=off: sync.hear requires power=on;"
        " agent=up is desired by site:"
        " haptera set node:n01 power=off --unset agent --take"
    )


def test_a_write_that_does_both_is_written() -> None:
    (write,) = proposed(off("user:eve"), UnsetDesired(NODE, "agent"))
    assert isinstance(write, Write)


def test_what_contradicts_nothing_is_written() -> None:
    (write,) = proposed(off("user:eve"), desired={"power": "on"})
    assert isinstance(write, Write)


def test_a_site_file_says_what_should_be_and_its_lint_what_cannot() -> None:
    (write,) = proposed(off("site"))
    assert isinstance(write, Write)


def test_what_cannot_be_known_by_itself_is_not_blamed_on_others() -> None:
    (write,) = proposed(SetDesired(NODE, "busy", "free", "user:eve"))
    assert isinstance(write, Write)
