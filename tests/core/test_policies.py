"""Policies as entities: on which terms parts are run, what changing them does, what is refused."""

from dataclasses import replace

import pytest

from haptera.core.desired.policies import MEANING_EACH, PartTerms, Policies
from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.allowance import TURN_WORK_MAX
from haptera.core.state.limits import MS, S
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import (
    Cause,
    Change,
    Declare,
    Desired,
    OpenIntent,
    SetDesired,
    Stored,
    StoredEntity,
    Undeclare,
)
from haptera.model.effects import Call, Reply, Work, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Exited, Failed, Proposed, Ready, Ticked, Written
from haptera.model.facts import Fact, Method
from haptera.model.intent import Intent
from haptera.model.messages import Ask
from haptera.model.policy import LOOKING, STEPPING, Policy
from tests.core.scenario import (
    ATTRIBUTES,
    BMC,
    LOOK,
    NODE,
    ON,
    SIDE,
    call,
    looked,
    parent,
    row_of,
    standing,
    told,
)

OTHER = node_id("n02")
NAMES = {
    name
    for part in parent(Stored(7, 3, [], [], {})).catalog.parts()
    for name in (part.module, part.path)
}
PARTS = f"there are {', '.join(sorted(NAMES))}"
TOO_LONG = "the back-off must be positive, and at most its own maximum"


def policy(name: str, **values: str | int) -> StoredEntity:
    desired = {key: Desired(value, "site") for key, value in ({"of": "n01"} | values).items()}
    return StoredEntity(EntityId("policy", name, None), {}, "site", desired, 3)


def engine_with(*policies: StoredEntity, intents: tuple[Intent, ...] = ()) -> Engine:
    node = StoredEntity(NODE, ATTRIBUTES, "site", {"power": Desired("on", "site")}, 3)
    return parent(Stored(7, 3, [node, *policies], list(intents), {}))


def changes(name: str, **values: str | int) -> tuple[Change, ...]:
    entity = EntityId("policy", name, None)
    sets = [
        SetDesired(entity, key, value, "site") for key, value in ({"of": "n01"} | values).items()
    ]
    return (Declare(entity, {}, "site"), *sets)


def failed_once(engine: Engine) -> str | None:
    """Have the step be refused; returns what is said of it."""
    told(engine, S, Ready("bmc"))
    told(engine, S, Answered(1, "off", S))
    told(engine, S, Written(1, 4))
    told(engine, S, Failed(2, "fuse", refused=True))
    return row_of(engine).attempts.error


def test_a_part_is_run_on_its_own_terms_where_no_policy_says_otherwise() -> None:
    engine = engine_with(policy("other", of="n02", attempts=2), policy("none", parts="bmc.look"))

    assert engine.hands.policies.terms(NODE, ON) == PartTerms(STEPPING, ON.within_ms, None)
    assert engine.hands.policies.terms(NODE, LOOK) == PartTerms(LOOKING, LOOK.within_ms, None)


@pytest.mark.parametrize(
    ("policies", "good_for_ms"),
    [
        ((), 600_000),
        # Memory is trained for a quarter of an hour.
        ((policy("slow", parts="sync.hear", within_ms=120_000),), 1_200_000),
        ((policy("other", of="n02", parts="sync.hear", within_ms=120_000),), 600_000),
    ],
)
def test_the_token_of_a_boot_is_good_for_as_long_as_the_boot_is_waited_for(
    policies: tuple[StoredEntity, ...], good_for_ms: int
) -> None:
    boots = replace(BMC, steps=(replace(ON, enrols=True),))
    node = StoredEntity(NODE, ATTRIBUTES, "site", {"power": Desired("on", "site")}, 3)
    stored = Stored(7, 3, [node, *policies], [], {})
    engine = Engine(SIDE, Catalog(KINDS, [boots]), stored, 0, S)
    told(engine, S, Ready("bmc"))
    (write,) = told(engine, S, Answered(1, "off", S))

    assert isinstance(write, Write)
    (opened,) = write.changes
    assert isinstance(opened, OpenIntent)
    assert opened.good_for_ms == good_for_ms


def test_policies_are_put_over_field_by_field_the_higher_rank_last() -> None:
    engine = engine_with(
        policy("a", of="*", attempts=9, within_ms=700, rank=2),
        policy("b", of="node:n*", attempts=3, cool_down_ms=90_000, backoff_ms=2_000, rank=1),
        policy("c", parts="bmc.look", within_ms=50, rank=3),
        policy("d", parts="bmc", fails_to="hung"),
    )

    assert engine.hands.policies.terms(NODE, ON) == PartTerms(
        Policy(9, backoff_ms=2_000, backoff_ms_max=300_000, cool_down_ms=90_000), 700, "hung"
    )
    assert engine.hands.policies.terms(NODE, LOOK).within_ms == 50
    assert engine.hands.policies.terms(OTHER, ON).fails_to is None


def test_of_equal_ranks_the_later_name_holds() -> None:
    engine = engine_with(policy("b", attempts=2), policy("a", attempts=4))

    assert engine.hands.policies.terms(NODE, ON).policy.attempts == 2


def test_looks_and_steps_have_the_time_that_policies_give_them() -> None:
    engine = engine_with(
        policy("look", parts="bmc.look", within_ms=300),
        policy("on", parts="bmc.switch_on", within_ms=9_000, fails_to="hung"),
    )
    assert call(1, Work.LOOK, "look", S + 300 * MS) in told(engine, S, Ready("bmc"))
    told(engine, S, Answered(1, "off", S))
    assert told(engine, S, Written(1, 4)) == [call(2, Work.STEP, "switch_on", 10 * S, "a1-1")]

    # A look that nobody answers is over after its time, and a step infers what its policy says.
    told(engine, 10 * S + 500 * MS, Ticked())
    row = row_of(engine)
    assert row.work.stepping is not None
    assert row.work.stepping.error == "bmc.switch_on: no answer within 9 s"
    assert row.work.stepping.settled_at == 13 * S
    assert row.belief.known["power"] == Fact("hung", "bmc", Method.INFERRED, 10 * S + 500 * MS, 0)


def test_a_part_is_given_up_when_its_policy_says_so() -> None:
    error = failed_once(engine_with(policy("once", attempts=1, cool_down_ms=60_000)))

    assert error == "bmc.switch_on: fuse; given up after 1 attempt, for 1 min"


def test_what_was_given_up_is_tried_at_once_when_a_policy_of_it_changes() -> None:
    engine = engine_with(policy("once", attempts=1, cool_down_ms=60_000))
    failed_once(engine)
    assert told(engine, 5 * S, Ticked()) == []
    told(engine, 5 * S, Proposed(8, changes("apart", of="n02", attempts=4)))
    assert told(engine, 5 * S, Written(3, 7)) == [Reply(8, 7)]

    once = EntityId("policy", "once", None)
    told(engine, 5 * S, Proposed(9, (SetDesired(once, "attempts", 2, "site"),)))
    replied, opened = told(engine, 5 * S, Written(4, 8))
    assert replied == Reply(9, 8)
    assert isinstance(opened, Write)
    assert isinstance(opened.changes[0], OpenIntent)


def test_a_policy_of_very_many_is_followed_over_many_turns() -> None:
    table = EntityTable(KINDS)
    nodes = {node_id(f"n{number}") for number in range(1_500)}
    for entity in sorted(nodes):
        table.apply(Declare(entity, {}, "site"), 1)
    policies = Policies(table, Catalog(KINDS, []))
    table.apply(Declare(EntityId("policy", "p", None), {}, "site"), 1)
    table.apply(SetDesired(EntityId("policy", "p", None), "of", "node:*", "site"), 1)

    turns = [Turn(S)]
    policies.follow(turns[0])
    while policies.waits:
        turns.append(Turn(S))
        policies.follow(turns[-1])
    assert max(len(turn.dirty) for turn in turns) <= TURN_WORK_MAX // MEANING_EACH
    assert {entity for turn in turns for entity in turn.dirty} == nodes


def test_a_boot_may_take_as_long_as_a_policy_of_the_parents_ear_says() -> None:
    slow = policy("slow", parts="sync.hear", within_ms=2_000)
    desired = {"power": Desired("on", "site"), "agent": Desired("up", "site")}
    engine = parent(
        Stored(7, 3, [StoredEntity(NODE, ATTRIBUTES, "site", desired, 3), slow], [], {})
    )
    told(engine, S, Ready("bmc"))
    told(engine, S, Answered(1, "on", S))
    row = row_of(engine)
    assert (row.stance.condition, row.stance.why) == (
        Condition.ACTING,
        "waits to hear from the agent",
    )

    told(engine, 3 * S, Ticked())
    assert (row.stance.condition, row.stance.why) == (
        Condition.STUCK, "nothing heard from the agent for 2 s",
    )  # fmt: skip


def test_a_reading_lives_until_looks_are_overdue_by_the_time_that_a_policy_gives_them() -> None:
    engine = looked("on", engine_with(policy("slow", parts="bmc.look", within_ms=3_000)))
    told(engine, S, Exited("bmc", "was killed"))
    row = row_of(engine)

    told(engine, 33 * S, Ticked())
    assert "power" in row.belief.known
    told(engine, 34 * S, Ticked())
    assert "power" in row.belief.remembered


def test_a_permit_is_asked_for_as_long_as_a_policy_lets_the_step_take() -> None:
    engine = engine_with(policy("slow", within_ms=7_000))

    assert engine.safety.permits.ask_for(NODE, "a1-1", ON) == Ask(
        "a1-1", ON.path, 7_000 + ON.late_ms
    )


def test_half_of_a_change_leaves_a_part_on_its_own_terms() -> None:
    engine = engine_with(policy("long", backoff_ms=400_000, cool_down_ms=2_000_000))

    assert engine.hands.policies.terms(NODE, ON).policy == STEPPING


def test_an_intent_of_an_earlier_process_is_settled_by_the_terms_that_it_may_have_had() -> None:
    left = Intent("99-1", NODE, "bmc", "switch_on", S, "boot")
    engine = engine_with(policy("long", within_ms=20_000), intents=(left,))
    told(engine, 2 * S, Ready("bmc"))
    row = row_of(engine)
    assert row.work.stepping is not None
    assert row.work.stepping.settled_at == 24 * S

    # It may have had more time when it was begun, but none after the end of its process.
    stored = Stored(7, 3, [*engine.table.stored()], [left], {})
    later = Engine(SIDE, engine.catalog, stored, 0, 100 * S)
    told(later, 100 * S, Ticked())
    row = row_of(later)
    assert row.work.stepping is not None
    assert row.work.stepping.settled_at == 103 * S


def refusal(engine: Engine, *proposed: Change) -> str | None:
    (effect,) = [
        one for one in told(engine, S, Proposed(5, proposed)) if isinstance(one, Reply | Write)
    ]
    if isinstance(effect, Write):
        return None
    assert effect.cause is Cause.INVALID
    return effect.refusal


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"attempts": 3}, None),
        ({"of": "n02", "backoff_ms": 400_000}, None),  # nobody is there yet
        ({"parts": "bmc"}, None),
        ({"fails_to": "hung", "parts": "bmc.switch_on"}, None),
        (
            {"parts": "bcm"},
            f"there is no part 'bcm' (did you mean bmc? {PARTS})",
        ),
        (
            {"parts": "bmc.off"},
            f"there is no part 'bmc.off' (did you mean bmc.look? {PARTS})",
        ),
        ({"fails_to": "broken"}, "no step that it applies to can fail to 'broken'"),
        ({"fails_to": "unknown"}, "no step that it applies to can fail to 'unknown'"),
        (
            {"fails_to": "hung", "parts": "bmc.look"},
            "no step that it applies to can fail to 'hung'",
        ),
        (
            {"parts": "bmc.switch_on", "backoff_ms": 400_000},
            f"bmc.switch_on on node:n01: {TOO_LONG}",
        ),
        ({"attempts": 0}, "policy.attempts: 0 is out of range (write one from 1 to 1000000)"),
    ],
)
def test_a_policy_that_means_nothing_or_cannot_be_is_refused(
    values: dict[str, str | int], text: str | None
) -> None:
    told_of = refusal(engine_with(), *changes("p", **values))

    assert told_of == (None if text is None else f"policy:p: {text}")


def test_policies_that_are_impossible_together_are_refused_whatever_brings_them_together() -> None:
    long, high = (
        policy("long", of="n02", backoff_ms=400_000),
        policy("high", of="*", backoff_ms_max=500_000),
    )
    sooner = "bmc.look on node:n02: the cool-down must not be shorter than the back-off"
    new_node = Declare(OTHER, ATTRIBUTES, "site")

    assert refusal(engine_with(long), new_node) == f"policy:long: sync.hear on node:n02: {TOO_LONG}"
    assert refusal(engine_with(long, high), new_node) == f"policy:high and policy:long: {sooner}"
    longest = policy("longest", of="*", cool_down_ms=500_000)
    engine = engine_with(long, high, longest)
    assert refusal(engine, new_node) is None
    assert refusal(engine, new_node, Undeclare(high.entity)) is not None
    assert refusal(engine, new_node, Undeclare(high.entity), Undeclare(long.entity)) is None
    assert refusal(engine_with(long), new_node, Undeclare(OTHER)) is None


def test_a_look_that_failed_meanwhile_does_not_take_away_why_the_step_is_left_alone() -> None:
    engine = engine_with(policy("slow", backoff_ms=600_000, backoff_ms_max=600_000))
    assert failed_once(engine) == "bmc.switch_on: fuse"
    looks = [one for one in told(engine, 12 * S, Ticked()) if isinstance(one, Call)]
    told(engine, 12 * S, Failed(looks[0].id, "no route to host"))
    again = [one for one in told(engine, 30 * S, Ticked()) if isinstance(one, Call)]
    told(engine, 30 * S, Answered(again[0].id, "off", 30 * S))

    assert standing(engine) == (Condition.STUCK, "bmc.switch_on: fuse")


def test_a_policy_of_more_nodes_than_there_are_numbers_is_refused_and_ends_nothing() -> None:
    engine = engine_with()
    told(engine, S, Ready("bmc"))
    (reply,) = told(engine, 2 * S, Proposed(9, changes("x", of="n[1-9]" * 30)))
    assert isinstance(reply, Reply)
    assert "more than 200000 nodes" in (reply.refusal or "")
