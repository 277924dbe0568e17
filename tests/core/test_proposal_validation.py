"""What is proposed is checked some at a time, in its order, and holds when it is written."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from haptera.core.desired.policies import Policies
from haptera.core.desired.proposal_validation import (
    ANEW_MAX,
    CHECKED_AT_ONCE,
    CHECKED_WORK_MAX,
    CHECKING_EACH,
    WAITING_MAX,
    Checked,
    Checks,
    ProposalRefusal,
)
from haptera.core.desired.proposals import TAKEN_OVER_MAX
from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.kinds import KINDS
from haptera.model.changes import (
    Cause,
    Change,
    Declare,
    Desired,
    SetDesired,
    Stored,
    StoredEntity,
    Undeclare,
)
from haptera.model.effects import Effect, PlanReply, Reply, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Considered, Event, Proposed, Ticked, Written
from tests.core.scenario import ATTRIBUTES, BMC, SIDE, told
from tests.planner.test_search_budget import steps

# More than a turn checks, and than two do.
MANY = CHECKED_WORK_MAX // CHECKING_EACH
NODES = [node_id(f"n{number:04}") for number in range(2 * MANY)]
# Going through a change calls some five functions; what else is done in a turn is little.
STEPS_A_TURN_MAX = 40 * MANY
POLICY = EntityId("policy", "patient", None)


def parent(*entities: StoredEntity) -> Engine:
    """A parent of many nodes that has decided on all of them."""
    nodes = [StoredEntity(one, ATTRIBUTES, "site", {}, 1) for one in NODES]
    engine = Engine(SIDE, Catalog(KINDS, [BMC]), Stored(1, 1, [*nodes, *entities], [], {}), 0, S)
    rest(engine)
    return engine


def rest(engine: Engine, *events: Event) -> list[list[Effect]]:
    """What comes of this turn, and of each that follows at once."""
    found = [told(engine, S, *events)]
    while (deadline := engine.deadline()) is not None and deadline <= S:
        found.append(told(engine, S, Ticked()))
    return found


def on(nodes: Iterable[EntityId]) -> tuple[Change, ...]:
    return tuple(SetDesired(one, "power", "on", "site") for one in nodes)


def replies(effects: Iterable[Iterable[Effect]]) -> list[Effect]:
    wanted = Write | Reply | PlanReply
    return [one for some in effects for one in some if isinstance(one, wanted)]


def test_a_small_proposal_is_written_in_the_very_turn_in_which_it_comes() -> None:
    changes = on(NODES[:100])
    assert told(parent(), S, Proposed(7, changes)) == [Write(1, changes)]


def test_very_many_changes_are_checked_in_many_turns_and_written_as_one() -> None:
    engine, changes, effects = parent(), on(NODES), list[Effect]()
    counts = [steps(lambda: effects.extend(told(engine, S, Proposed(7, changes))))]
    while not effects:
        assert engine.deadline() == S
        counts.append(steps(lambda: effects.extend(told(engine, S, Ticked()))))
    assert effects == [Write(1, changes)]
    assert len(counts) > 2
    assert max(counts) < STEPS_A_TURN_MAX


def test_others_are_decided_on_while_very_much_is_checked() -> None:
    asked = Asked()
    asked.ask(on(NODES[:1] * 2 * MANY))
    assert asked.turn.allowance.has_time
    assert asked.turn.allowance.spent >= CHECKED_WORK_MAX


def test_what_was_proposed_first_is_written_first_though_it_takes_longer() -> None:
    engine, many, one = parent(), on(NODES), on(NODES[:1])
    effects = rest(engine, Proposed(7, many), Proposed(8, one))
    assert replies(effects) == [Write(1, many), Write(2, one)]
    engine.handle([Proposed(7, many)], S)
    assert replies(rest(engine, Proposed(8, one))) == [Write(3, many), Write(4, one)]


def test_a_plan_has_its_turn_after_what_was_proposed_before_it() -> None:
    engine, many = parent(), on(NODES)
    lost = on([node_id("lost")])
    effects = rest(engine, Proposed(7, many), Considered(8, lost), Proposed(9, lost))
    text = "node:lost is not declared"
    assert replies(effects) == [
        Write(1, many),
        PlanReply(8, None, text, Cause.INVALID),
        Reply(9, None, text, Cause.INVALID),
    ]


def test_what_is_gone_before_all_is_checked_is_not_written() -> None:
    engine = parent()
    told(engine, S, Proposed(6, (Undeclare(NODES[0]),)))
    told(engine, S, Proposed(7, on(NODES)))
    effects = rest(engine, Written(1, 2))
    text = f"{NODES[0]} is not declared"
    assert replies(effects) == [Reply(6, 2), Reply(7, None, text, Cause.INVALID)]


def test_what_there_is_only_before_all_is_checked_is_written_as_it_then_is() -> None:
    engine = parent()
    late = node_id("late")
    told(engine, S, Proposed(6, (Declare(late, {}, "site"),)))
    told(engine, S, Proposed(7, (many := (*on(NODES), *on([late])))))
    assert replies(rest(engine, Written(1, 2))) == [Reply(6, 2), Write(2, many)]


def test_very_much_is_checked_once_all_that_is_durable_is_taken_over() -> None:
    engine = parent()
    assert len(NODES) > TAKEN_OVER_MAX * ANEW_MAX // 8
    written = on(NODES * 8)
    rest(engine, Proposed(6, written))
    last = 1 + len(written)
    told(engine, S, Proposed(7, many := on(NODES)))
    assert replies(rest(engine, Written(1, last))) == [Reply(6, last), Write(2, many)]


def test_many_policies_and_entities_are_put_together_some_at_a_time() -> None:
    engine = parent(StoredEntity(POLICY, {}, "site", {"of": Desired("node:*", "site")}, 1))
    longer = SetDesired(POLICY, "backoff_ms", 400_000, "site")
    effects = list[Effect]()
    counts = [steps(lambda: effects.extend(told(engine, S, Proposed(7, (longer,)))))]
    while not effects:
        counts.append(steps(lambda: effects.extend(told(engine, S, Ticked()))))
    assert isinstance(effects[0], Reply)
    assert effects[0].refusal is not None
    assert effects[0].refusal.startswith(f"{POLICY}: sync.hear on {NODES[0]}: ")
    assert len(counts) > 2
    assert max(counts) < STEPS_A_TURN_MAX


class Asked:
    """Checks of a table that changes while they go on."""

    def __init__(self) -> None:
        self.table, self.turn = EntityTable(KINDS), Turn(S)
        self.table.apply(Declare(NODES[0], {}, "site"), 1)
        self.catalog = Catalog(KINDS, [BMC])
        self.settling = False
        policies = Policies(self.table, self.catalog)
        self.checks = Checks(self.table, self.catalog, policies, lambda: self.settling)
        self.found = list[Checked]()

    def ask(self, changes: tuple[Change, ...]) -> None:
        self.checks.ask(self.turn, changes, lambda _, found: self.found.append(found))

    def desire(self) -> None:
        """Something else is desired, and the next turn begins."""
        self.table.revision += 1
        self.checks.advance(self.turn)

    def take_over(self) -> None:
        """A module declares something else, and the next turn begins."""
        version = self.catalog.manifests[BMC.name].version + "1"
        self.catalog.replace(replace(BMC, version=version))
        self.checks.advance(self.turn)


@pytest.mark.parametrize("change", [Asked.desire, Asked.take_over])
def test_what_is_otherwise_again_and_again_has_a_check_given_up(
    change: Callable[[Asked], None],
) -> None:
    asked = Asked()
    asked.ask(on(NODES[:1] * 2 * MANY))
    for _ in range(ANEW_MAX):
        change(asked)
        assert asked.found == []
    change(asked)
    text = f"the state that it is checked against changed {ANEW_MAX + 1} times meanwhile"
    assert asked.found == [ProposalRefusal(text, Cause.STALE)]


def test_a_check_waits_while_what_is_desired_is_being_taken_over() -> None:
    asked = Asked()
    asked.ask(many := on(NODES[:1] * 2 * MANY))
    asked.settling = True
    for _ in range(2 * ANEW_MAX):
        asked.desire()
    asked.settling = False
    while asked.checks.waits:
        asked.checks.advance(asked.turn)
    assert asked.found == [many]


def test_what_takes_no_longer_than_a_turn_is_checked_while_much_is_being_taken_over() -> None:
    asked = Asked()
    asked.settling = True
    asked.ask(few := on(NODES[:1] * CHECKED_AT_ONCE))
    assert asked.found == [few]


def test_so_many_wait_to_be_checked_and_more_are_refused() -> None:
    asked = Asked()
    asked.ask(on(NODES[:1] * 2 * MANY))
    for _ in range(WAITING_MAX):
        asked.ask(on(NODES[:1]))
    text = f"{WAITING_MAX} changes are queued for checking already; try again later"
    assert asked.found == [ProposalRefusal(text, Cause.STORAGE)]
    while asked.checks.waits:
        asked.checks.advance(asked.turn)
    assert len(asked.found) == 1 + WAITING_MAX
