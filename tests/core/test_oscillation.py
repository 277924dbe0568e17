"""Two modules that undo each other are named, and slowed down by the policy of the step."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.core.act.oscillation import ADVICE, UNDONE_MAX, Scene, oscillates
from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.entity.attempts import Tried
from haptera.core.state.limits import LASTS_NS, MS, S
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.kinds import KINDS
from haptera.kinds.node import agent
from haptera.model.answers.views import Condition as Standing
from haptera.model.changes import Desired, SetDesired, Stored, StoredEntity
from haptera.model.declared.schema import Kind, Variable
from haptera.model.effects import Call, Effect, Work, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Answered,
    Asked,
    Ended,
    Event,
    Proposed,
    Ready,
    Ticked,
    Written,
)
from haptera.model.parts import Change, Context, Look, Manifest, Requirement, Step
from haptera.model.policy import STEPPING
from haptera.modules import load
from tests.core.scenario import row_of

GADGET = EntityId("gadget", "g", "n01")


class Bit(StrEnum):
    UNKNOWN = "unknown"
    ZERO = "0"
    ONE = "1"


NUMBERS = {Bit.UNKNOWN: 0, Bit.ZERO: 1, Bit.ONE: 2}
GADGETS = Kind("gadget", tuple(Variable("gadget", name, Bit, NUMBERS) for name in "xyz"))


def look(module: str, name: str, *requires: Requirement) -> Look:
    return Look(
        module, f"look_{name}", "gadget", name, ("0", "1"), requires, context=Context.PARENT
    )


def step(module: str, name: str, variable: str, to: str, *requires: Requirement) -> Step:
    change = Change(variable, ("1" if to == "0" else "0",), to)
    return Step(module, name, "gadget", (change,), requires, context=Context.PARENT, late_ms=1_000)


RAISE, LOWER = step("a", "raise", "x", "1"), step("b", "lower", "x", "0")
FILL = step("b", "fill", "y", "1", Requirement("x", ("0",)))
WHY = "oscillates: b.lower sets x to 0, a.raise sets it back to 1 (3 times in 30 s); " + ADVICE


class Rig:
    """A gadget that does as it is told, and more: `spoils` is what each step does besides."""

    def __init__(
        self,
        looks: tuple[Look, ...],
        steps: tuple[Step, ...],
        spoils: dict[str, Callable[[dict[str, str]], None]],
        *,
        takes_ms: Callable[[], int] = lambda: 10,
    ) -> None:
        parts = {name: ([], []) for name in "ab"}  # type: dict[str, tuple[list[Look], list[Step]]]
        for one in looks:
            parts[one.module][0].append(one)
        for each in steps:
            parts[each.module][1].append(each)
        manifests = [
            Manifest(name, "1", Context.PARENT, tuple(looks), tuple(steps))
            for name, (looks, steps) in parts.items()
        ]
        desired = {name: Desired("1", "site") for name in "xy"}
        node = StoredEntity(node_id("n01"), {}, "site", {}, 1)
        entity = StoredEntity(GADGET, {}, "site", desired, 1)
        side = Side(Context.PARENT, None, 0xA1, "boot", 5 * S)
        catalog = Catalog({**KINDS, "gadget": GADGETS}, manifests)
        self.engine = Engine(side, catalog, Stored(7, 1, [node, entity], [], {}), 0, S)
        self.steps = {one.path: one for one in steps}
        self.spoils, self._takes_ms = spoils, takes_ms
        self.state = {"x": "1", "y": "0", "z": "0"}
        self.now = S
        self.done: list[tuple[int, str]] = []
        self._coming: list[tuple[int, Event]] = [(S, Ready(name, 1, "1")) for name in "ab"]

    @property
    def row(self) -> EntityState:
        return row_of(self.engine, GADGET)

    def happen(self, *events: Event) -> None:
        self._coming += [(self.now, event) for event in events]

    def run(self, seconds: float) -> None:
        end = self.now + int(seconds * S)
        while self.now < end:
            here = [event for at, event in self._coming if at <= self.now]
            self._coming = [(at, event) for at, event in self._coming if at > self.now]
            for effect in self.engine.handle(here or [Ticked()], self.now):
                self._perform(effect)
            due = self.engine.deadline()
            times = [end, *(at for at, _ in self._coming), *([] if due is None else [due])]
            self.now = max(self.now + 1, min(times))
        self.now = end

    def took(self, path: str) -> int:
        return Counter(one for _, one in self.done)[path]

    def _perform(self, effect: Effect) -> None:
        later = self.now + self._takes_ms() * MS
        match effect:
            case Write(ticket):
                self._coming.append((self.now + MS, Written(ticket, 9)))
            case Call(id, Work.LOOK, part=part):
                value = self.state[part.removeprefix("look_")]
                self._coming.append((later, Answered(id, value, self.now)))
            case Call(id, Work.STEP, module, part):
                path = f"{module}.{part}"
                self.done.append((self.now, path))
                for change in self.steps[path].changes:
                    self.state[change.variable] = change.target
                self.spoils.get(path, lambda _: None)(self.state)
                self._coming.append((later, Ended(id)))
            case _:
                pass


def rivals(**more: Callable[[], int]) -> Rig:
    """Who raises x spoils y without saying so, which can be filled only while x is low."""
    return Rig(
        (look("a", "x"), look("b", "y"), look("b", "z")),
        (RAISE, LOWER, FILL),
        {"a.raise": lambda state: state.update(y="0")},
        **more,
    )


def test_after_three_rounds_for_nothing_both_modules_are_named() -> None:
    rig = rivals()
    while rig.row.stance.condition is not Standing.STUCK:
        rig.run(1)

    assert Counter(path for _, path in rig.done) == dict.fromkeys(
        ("b.lower", "b.fill", "a.raise"), UNDONE_MAX
    )
    assert rig.row.stance.why == WHY
    assert (rig.row.stance.verdict.again_at or 0) > rig.now


def test_it_goes_on_a_round_at_a_time_and_ever_more_rarely() -> None:
    rig = rivals()
    rig.run(3600)

    per_hour = UNDONE_MAX + STEPPING.attempts - 1 + 3600_000 // STEPPING.cool_down_ms
    assert UNDONE_MAX + STEPPING.attempts - 1 <= rig.took("a.raise") <= per_hour + 1
    before = rig.took("a.raise")
    rig.run(3600)
    assert rig.took("a.raise") <= before + 3600_000 // STEPPING.cool_down_ms


def test_it_ends_when_what_was_wrong_is_over() -> None:
    rig = rivals()
    rig.run(60)
    rig.spoils.clear()
    rig.run(60)

    assert (rig.row.stance.condition, rig.state["x"], rig.state["y"]) == (
        Standing.CONVERGED,
        "1",
        "1",
    )
    rig.run(60)
    assert rig.row.attempts.oscillation is None


def stuck() -> Rig:
    """After so many rounds that the next back-off is one of half an hour."""
    rig = rivals()
    rig.run(900)
    before = len(rig.done)
    rig.run(300)
    assert (len(rig.done), rig.row.stance.condition) == (before, Standing.STUCK)
    return rig


def test_a_person_may_ask_for_another_try() -> None:
    rig = stuck()
    rig.spoils.clear()
    rig.happen(Asked(GADGET))
    rig.run(30)

    assert rig.row.stance.condition is Standing.CONVERGED


def test_something_else_desired_is_tried_at_once() -> None:
    rig = stuck()
    rig.happen(Proposed(9, (SetDesired(GADGET, "x", "0", "site"),)))
    rig.run(30)

    assert rig.row.stance.condition is Standing.CONVERGED


def test_a_reading_that_neither_wrote_allows_one_more_round() -> None:
    rig = stuck()
    before = rig.took("a.raise")
    rig.state["z"] = "1"
    rig.run(60)
    assert rig.took("a.raise") == before + 1

    rig.spoils.clear()
    rig.state["z"] = "0"
    rig.run(60)
    assert rig.row.stance.condition is Standing.STUCK  # it may be a value that flaps
    rig.run(STEPPING.backoff_ms_max // 1000)
    assert rig.row.stance.condition is Standing.CONVERGED


def scene(*tried: tuple[str, int], of_node: tuple[int, ...] = ()) -> Scene:
    """An entity that is filled while it is high, on a node with a power of its own."""
    fill = step("b", "fill", "y", "1", Requirement("node.agent", ("up",)))
    looks = (
        look("a", "x"), look("b", "y", Requirement("x", ("1",))),
        look("b", "z", Requirement("node.agent", ("up",))),
    )  # fmt: skip
    steps = (
        fill,
        step("b", "mend", "z", "1"),
        step("a", "drain", "x", "0"),
        step("b", "sink", "x", "0"),
    )
    mine = Manifest("b", "1", Context.PARENT, looks, steps)
    gadgets = replace(GADGETS, borrows=(agent,))
    catalog = Catalog({**KINDS, "gadget": gadgets}, [mine, load("labnode").manifest()])
    node, row = EntityState(node_id("n01"), KINDS["node"]), EntityState(GADGET, gadgets)
    node.desired.attributes["platform"] = "labnode"
    for path, at in tried:
        row.attempts.note(Tried(path, at * S, "done", worked=True))
    for at in of_node:
        node.attempts.note(Tried("labnode.switch_off", at * S, "done", worked=True))
    return Scene(row, catalog.domain(row, node), (node, catalog.domain(node, node)))


def stops(one: Scene, path: str, now: int = 60) -> str | None:
    found = next(step for step in one.domain.steps if step.path == path)
    circle = oscillates(one, found, STEPPING, now * S)
    return None if circle is None else circle.text


ROUNDS = [
    (path, at + later) for at in (0, 10, 20) for path, later in (("b.fill", 1), ("a.drain", 2))
]


def test_a_step_that_takes_away_what_a_look_requires_is_named_too() -> None:
    assert stops(scene(*ROUNDS), "b.fill") == (
        "oscillates: b.fill sets y to 1, a.drain takes that away, setting x to 0 "
        f"(3 times in 59 s); {ADVICE}"
    )


def test_a_step_of_its_node_that_takes_away_what_a_look_borrows_is_named_too() -> None:
    mended = [("b.mend", at) for at in (1, 11, 21)]
    assert stops(scene(*mended, of_node=(2, 12, 22)), "b.mend") == (
        "oscillates: b.mend sets z to 1, labnode.switch_off takes that away, "
        f"setting node.power to off (3 times in 59 s); {ADVICE}"
    )


@pytest.mark.parametrize(
    "tried",
    [
        ROUNDS[:-1],  # done a third time, and not undone
        [*ROUNDS[:3], *ROUNDS[4:]],  # undone twice only
        [one for one in ROUNDS if one[0] == "b.fill"],  # by nobody
        [(path.replace("a.drain", "b.mend"), at) for path, at in ROUNDS],  # by nothing that counts
        [(path.replace("a.drain", "b.sink"), at) for path, at in ROUNDS],  # by its own module
        [*ROUNDS[:2], ("b.fill", 5), *ROUNDS[2:]],  # twice on end
    ],
)
def test_less_than_three_times_undone_is_no_oscillation(tried: list[tuple[str, int]]) -> None:
    assert stops(scene(*tried), "b.fill") is None


def test_what_was_long_ago_or_before_it_was_forgiven_does_not_count() -> None:
    assert stops(scene(*ROUNDS), "b.fill", now=601) is None
    one = scene(*ROUNDS)
    one.row.relent()
    assert stops(one, "b.fill") is None


def test_what_was_done_while_something_else_was_desired_of_the_node_does_not_count() -> None:
    """Somebody who switches a node off and on all the time gets what they ask for."""
    one = scene(*(("b.mend", at) for at in (1, 11, 21)), of_node=(2, 12, 22))
    assert one.node is not None
    one.node[0].relent()
    assert stops(one, "b.mend") is None


def test_where_nobody_else_undoes_it_the_words_are_that_it_does_not_last() -> None:
    rig = Rig((look("a", "x"), look("b", "y"), look("b", "z")), (RAISE,), {})
    rig.state["y"] = "1"
    whys = set()
    for _ in range(120):
        rig.run(5)
        whys.add(rig.row.stance.why)
        rig.state["x"] = "0"

    assert "a.raise was repeated several times: its effect does not last" in whys
    assert not any(why and why.startswith("oscillates") for why in whys)


@pytest.mark.campaign
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), slowest_ms=st.sampled_from([5, 500, 4_000, 30_000]),
       flaps=st.booleans())  # fmt: skip
def test_whatever_the_timing_the_steps_of_an_hour_are_few(
    seed: int, slowest_ms: int, flaps: bool
) -> None:
    rng = Random(seed)
    rig = rivals(takes_ms=lambda: rng.randrange(1, slowest_ms))
    for _ in range(0, 2 * 3600, 30):
        rig.run(30)
        if flaps:
            rig.state["z"] = rng.choice("01")
    hours = Counter((at // (3600 * S), path) for at, path in rig.done)

    quickly = UNDONE_MAX + STEPPING.attempts - 1 + 3600_000 // STEPPING.cool_down_ms
    slowly = UNDONE_MAX * 3600 * S // LASTS_NS
    thawed = 3600_000 // STEPPING.backoff_ms_max + 1 if flaps else 0
    assert max(hours.values()) <= max(quickly, slowly) + thawed, hours
