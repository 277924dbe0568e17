"""What may come of looks: the steps of every world, counted as by going through all worlds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from hypothesis import given

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.model.chain import Chain, Do, NoChain, Reason, ReasonKind
from haptera.model.parts import Change, Look, Step
from haptera.modules import load
from haptera.planner.contingent import Outcomes, outcomes
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.domain.problem import Problem
from haptera.planner.planner import plan
from tests.planner.planner_model import Model, State, freeze
from tests.planner.strategies import Question, questions, show_each

POWER = {"power": ("unknown", "off", "on", "hung")}
LOOK = Look("m", "look", "k", "power", ("off", "on", "hung"))
UP = Step("m", "up", "k", (Change("power", ("off",), "on"),))
DOWN = Step("m", "down", "k", (Change("power", ("on",), "off"),), disruptive=True)
RESET = Step("m", "reset", "k", (Change("power", ("hung",), "off"),), cost=9, disruptive=True)
SPENT = NoChain(Reason(ReasonKind.BUDGET, None, "gave up"), 1)
ON = {"power": "on"}


def domain_of(*steps: Step, look: Look = LOOK) -> Domain:
    return compile_class(Problem(POWER, {}, (look,), steps))


def found(domain: Domain, start: int, goal: Mapping[str, str]) -> Outcomes:
    told = outcomes(domain, start, lambda state: plan(domain, state, goal))
    assert told is not None
    return told


def test_what_is_not_known_counts_in_every_way_that_a_look_may_find_it() -> None:
    domain = domain_of(UP, DOWN, RESET)
    assert found(domain, domain.start({}, {}), ON) == Outcomes(
        (RESET, UP), ("power",), stuck=False, whole=True
    )
    assert found(domain, domain.start({"power": "off"}, {}), ON) == Outcomes(
        (UP,), (), stuck=False, whole=True
    )


def test_a_memory_may_be_otherwise_by_now() -> None:
    domain = domain_of(UP, DOWN, RESET)
    remembered = domain.start({}, {"power": "on"})
    assert found(domain, remembered, ON).steps == (RESET, UP)


def test_where_a_look_may_find_what_there_is_no_way_from_some_would_be_stuck() -> None:
    domain = domain_of(UP)
    assert found(domain, domain.start({}, {}), ON) == Outcomes(
        (UP,), ("power",), stuck=True, whole=True
    )


def test_what_a_step_is_expected_to_bring_it_brings() -> None:
    boots = Step("m", "boot", "k", (Change("power", ("*",), "on", expected=True),))
    domain = domain_of(boots, DOWN)
    assert found(domain, domain.start({"power": "off"}, {}), ON).steps == (boots,)


def test_what_no_look_can_say_may_be_found_to_be_anything() -> None:
    tried = Change("tried", ("no",), "yes")
    crash = Step("m", "crash", "k", (Change("power", ("on",), "hung", expected=True), tried))
    calm = Step("m", "calm", "k", (Change("power", ("on",), "off"),), cost=9)
    look = Look("m", "look", "k", "power", ("off", "on"))
    variables = POWER | {"tried": ("unknown", "no", "yes")}
    domain = compile_class(Problem(variables, {}, (look,), (crash, calm)))
    start = domain.start({"power": "on", "tried": "no"}, {})
    assert found(domain, start, {"power": "off"}) == Outcomes(
        (calm, crash), (), stuck=False, whole=True
    )


def test_a_lab_node_of_which_nothing_is_known_is_switched_on_at_most() -> None:
    manifest = load("labnode").manifest()
    parts = [one for one in (*manifest.looks, *manifest.steps) if one.kind == "node"]
    variables = {
        one.name: tuple(value.value for value in one.values) for one in node.kind.variables
    }
    problem = Problem(
        variables,
        {"platform": "labnode"},
        tuple(one for one in parts if isinstance(one, Look)),
        tuple(one for one in parts if isinstance(one, Step)),
    )
    domain = compile_class(problem)
    on = found(domain, domain.start({}, {}), {"power": Power.ON})
    off = found(domain, domain.start({}, {}), {"power": Power.OFF})
    assert [one.path for one in on.steps] == ["labnode.switch_on"]
    assert [one.path for one in off.steps] == ["labnode.switch_off"]


def test_what_is_not_planned_yet_is_waited_for_and_what_is_too_dear_is_said() -> None:
    domain = domain_of(UP, DOWN, RESET)
    start = domain.start({}, {})

    def poor(answer: NoChain | None, state: int) -> Chain | NoChain | None:
        return plan(domain, state, ON) if state == start else answer

    assert outcomes(domain, start, lambda state: poor(None, state)) is None
    assert outcomes(domain, start, lambda state: poor(SPENT, state)) == Outcomes(
        (), ("power",), stuck=False, whole=False
    )


@dataclass
class Worlds:
    """The plain model: each world gone through by itself, from the start to its end."""

    question: Question
    model: Model
    domain: Domain
    steps: set[str] = field(default_factory=set)
    stuck: bool = False

    def go(self) -> None:
        start = self.model.start(self.question.observed, self.question.remembered)
        for world in self._worlds(start):
            self._run(start, world, frozenset())

    def _worlds(self, start: State) -> Iterator[State]:
        choices = {
            name: [status] if self.model.is_known(name, status) else self._findable(name)
            for name, status in start.items()
        }
        for values in product(*choices.values()):
            yield dict(zip(choices, values, strict=True))

    def _findable(self, name: str) -> list[str]:
        looks = (look for look in self.model.looks if look.at == name)
        return sorted({value for look in looks for value in look.outcomes}) or ["-"]

    def _run(self, state: State, world: State, seen: frozenset[object]) -> None:
        here = freeze(state), freeze(world)
        known = {n: s for n, s in state.items() if self.model.is_known(n, s)}
        memory = {n: s.removesuffix("?") for n, s in state.items() if s.endswith("?")}
        start = self.domain.start(known, memory)
        answer = plan(self.domain, start, self.question.desired)
        if isinstance(answer, NoChain):
            self.stuck = True
        if here in seen or isinstance(answer, NoChain) or not answer.links:
            return
        link = answer.links[0]
        if isinstance(link, Do):
            self.steps.add(link.step.path)
            done = {one.variable: one.target for one in link.step.changes}
            after = self.model.strip(self.model.changed(state, link.step))
            self._run(after, world | done, seen | {here})
            return
        name, truth = link.look.at, world[link.look.at]
        tellable = truth in self._findable(name)
        for value in link.look.outcomes:
            if value == truth or not tellable:
                self._run(state | {name: value}, world | {name: value}, seen | {here})


@given(questions())
def test_the_steps_are_those_of_all_worlds(question: Question) -> None:
    domain = compile_class(question.problem)
    start = domain.start(question.observed, question.remembered)
    worlds = Worlds(question, Model(question.problem), domain)
    worlds.go()
    told = found(domain, start, question.desired)
    assert ({one.path for one in told.steps}, told.stuck) == (worlds.steps, worlds.stuck)


def test_most_worlds_differ() -> None:
    """Else the property would say little: in each fourth example looks lead to several steps."""
    many = list[bool]()

    def count(question: Question) -> None:
        domain = compile_class(question.problem)
        start = domain.start(question.observed, question.remembered)
        told = found(domain, start, question.desired)
        many.append(bool(told.looked) and len(told.steps) > 1)

    show_each(questions(), 200, count)
    assert sum(many) * 4 > len(many), sum(many)
