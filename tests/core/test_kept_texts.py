"""Views that are kept as JSON say what views made anew would say."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from haptera.core.state.entity.verdict import Stands, Verdict
from haptera.core.state.entity.work import LookSchedule, ReadingConflict
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.core.views.query import view
from haptera.core.views.texts import text_of
from haptera.kinds import KINDS
from haptera.kinds.node import Power
from haptera.model.answers.views import Condition, EntityView
from haptera.model.chain import Chain, Find
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from haptera.model.facts import Fact, Method
from haptera.model.parts import Look

N1 = node_id("n1")
LOOK = Look("labnode", "look_power", "node", "power", ("off", "on"))
SEEN = Fact(Power.ON, "labnode", Method.READ, 10 * MS, 1, "a note")
STUCK = Verdict(Condition.STUCK, "it is stuck", "somebody")
NOW = 50 * MS


def a_row() -> EntityState:
    """A node that is stuck, with a reading and a memory."""
    table = EntityTable(KINDS)
    # Such texts are neither ages nor formats.
    table.apply(Declare(N1, {"age_ms": '"age_ms":1', "%": "100%d"}, "site"), 1)
    table.apply(SetDesired(N1, "power", "off", "site"), 2)
    row = table.make(N1)
    row.belief.learn("power", SEEN)
    row.belief.remember("agent", Fact("up", "sync", Method.READ, 5 * MS, 1))
    row.stance.arrive(STUCK, 20 * MS)
    return row


def read(row: EntityState, **changed: object) -> None:
    row.belief.learn("power", msgspec.structs.replace(SEEN, **changed))


def plan(row: EntityState) -> None:
    row.stance.plan = Chain(
        (Find(LOOK, "on", hoped=False),), (), 1, optimal=True, doubts=False, expanded=1
    )


def begin_looking(row: EntityState) -> None:
    plan(row)
    row.work.looks = {LOOK.path: LookSchedule(call=1, asked_at=30 * MS)}


def judge(row: EntityState, **changed: object) -> None:
    row.stance.arrive(replace(row.stance.verdict, **changed), NOW)


def write(row: EntityState, **changed: object) -> None:
    for name, value in changed.items():
        setattr(row.desired, name, value)


def set_of(row: EntityState, part: str, **changed: object) -> None:
    for name, value in changed.items():
        setattr(getattr(row, part), name, value)


CHANGES: dict[str, Callable[[EntityState], object]] = {
    "the revision": lambda row: write(row, revision=9),
    "an attribute": lambda row: write(row, attributes={"rack": "r1"}),
    "no desired value": lambda row: write(row, values={}),
    "another value": lambda row: read(row, value=Power.OFF),
    "another reader": lambda row: read(row, by="ipmi"),
    "another method": lambda row: read(row, method=Method.INFERRED),
    "another note": lambda row: read(row, note=None),
    "a memory": lambda row: row.belief.forget("power", NOW),
    "a forgotten memory": lambda row: row.belief.drop(["agent"]),
    "a conflict": lambda row: set_of(
        row, "work", conflicts={"power": ReadingConflict("power", SEEN, "power", NOW)}
    ),
    "the condition": lambda row: judge(row, condition=Condition.WAITING),
    "the reason": lambda row: judge(row, why="other"),
    "who is in the way": lambda row: judge(row, needs="nobody"),
    "the word of the agent": lambda row: judge(
        row, quotes=Stands(Condition.STUCK, 1 * MS, "why", "an error")
    ),
    "when it is tried again": lambda row: judge(row, again_at=99 * MS),
    "a bar": lambda row: row.attempts.bar(0, LOOK.path, 90 * MS, NOW),
    "a failed look": lambda row: set_of(
        row, "work", looks={LOOK.path: LookSchedule(failed_until=80 * MS)}
    ),
    "an error": lambda row: row.attempts.blame(LOOK.path, "an error"),
    "a plan": plan,
    "a look under way": begin_looking,
    "a freeze": lambda row: set_of(row, "stance", frozen="frozen by eve"),
    "a loss": lambda row: set_of(row, "report", lost_at=40 * MS),
    "a suspicion": lambda row: set_of(row, "report", suspect=True),
}
# What an entity is; and what a list does not tell.
FIXED = {"entity", "kind", "name", "node", "tried", "explained"}


def made(row: EntityState, now: int, enrolment: str | None = None) -> bytes:
    return msgspec.json.encode(view(row, now, enrolment))


def told(row: EntityState, now: int, enrolment: str | None = None) -> bytes:
    return bytes(text_of(row, now, enrolment))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_changes_is_told_though_a_text_was_kept(
    change: Callable[[EntityState], object],
) -> None:
    row = a_row()
    assert told(row, NOW) == made(row, NOW)
    assert row.text is not None
    change(row)
    for at in (NOW, 60 * MS):
        assert told(row, at) == made(row, at)


def test_each_field_of_a_view_is_among_what_changes() -> None:
    """One that is added has to be added to what a text is made of, too."""
    changed = {"enrolment"}
    for change in CHANGES.values():
        row, other = a_row(), a_row()
        change(other)
        views = view(row, NOW), view(other, NOW)
        changed |= {
            name
            for name in EntityView.__struct_fields__
            if getattr(views[0], name) != getattr(views[1], name)
        }
    assert changed == {*EntityView.__struct_fields__} - FIXED


def test_a_text_is_kept_while_only_ages_change() -> None:
    row = a_row()
    assert told(row, NOW) == made(row, NOW)
    kept = row.text
    read(row, at=55 * MS)
    assert told(row, 70 * MS) == made(row, 70 * MS)
    assert row.text is kept
    assert told(row, 70 * MS, "window") == made(row, 70 * MS, "window")
    assert row.text is not kept
