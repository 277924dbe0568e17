"""One pass over columns says for each entity what the plain rows say, and what is planned."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.chain import Chain, Find, NoChain, ReasonKind
from haptera.model.parts import Change, Look, Step
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.domain.problem import Problem
from haptera.planner.domain.task import Memory, Task
from haptera.planner.fleet.columns import Columns
from haptera.planner.fleet.levels import MET, UNKNOWN, WALLED, table
from haptera.planner.fleet.states import States, numbering
from haptera.planner.planner import plan
from haptera.planner.search.factors import Factor, factors_of
from haptera.planner.search.full_policy import knowable, solve
from haptera.planner.search.policy_cache import PolicyCache
from haptera.planner.search.serial_subgoals import End, subgoals_of
from tests.planner.layers import layered
from tests.planner.shapes import Parts, drawn, entangled, in_chain, independent, problem, services
from tests.planner.strategies import Question, questions
from tests.planner.twins import side_by_side

# Shrinking takes up to five minutes; to end it sooner would hide the example.
pytestmark = pytest.mark.timeout(360)

ENTITIES = 60
# States of a drawn problem; those with more are left out where all are gone through.
ALL = 2_000


def drawn_words(domain: Domain, random: Random, count: int = ENTITIES) -> list[int]:
    """Each variable known, remembered or unknown, not stripped."""
    return [
        sum(random.choice(field.bits) for field in domain.fields.values()) for _ in range(count)
    ]


def words_around(domain: Domain, question: Question, random: Random) -> list[int]:
    """The question's own start, and drawn ones, alike and different."""
    start = domain.start(question.observed, question.remembered)
    others = [domain.strip(word) for word in drawn_words(domain, random)]
    return [start, *others, *others[:3]]


def begins(answer: Chain | NoChain) -> tuple[object, ...]:
    """What a chain begins with, or its end."""
    if isinstance(answer, NoChain):
        spent = answer.reason.kind is ReasonKind.BUDGET
        return (End.UNKNOWN if spent else End.WALLED,)
    if not answer.links:
        return (End.MET,)
    link = answer.links[0]
    return (link.look, link.expect) if isinstance(link, Find) else (link.step,)


def told(domain: Domain, number: int) -> tuple[object, ...]:
    """The same of a number."""
    if number < 0:
        return (End(number),)
    link = list(numbering(domain))[number].link
    return (link.look, link.expect) if isinstance(link, Find) else (link.step,)


def tables_tell(domain: Domain, word: int, goal: Mapping[str, str]) -> bool:
    """Whether what comes next stands in tables, so that columns have to tell it by themselves."""
    within = factors_of(domain, goal, Memory.DOUBTED).whole.within
    trusting, memories = word | domain.touched, domain.memories(word)
    roots = [(trusting, Memory.TRUSTED), (trusting & ~memories, Memory.DOUBTED)]
    for root, memory in roots if memories & within else roots[:1]:
        parts = factors_of(domain, goal, memory).parts
        ends = [without_searches(one).next(root & one.task.within) for one in parts]
        if End.WALLED not in ends:
            return End.UNKNOWN not in ends
    return True


def without_searches(part: Factor) -> PolicyCache:
    """Its tables, with nothing kept of what searches found."""
    tables = part.tables
    return PolicyCache(part.task, 0, ahead=tables.ahead, stages=tables.stages)


def test_words_become_columns_and_words_again() -> None:
    domain = compile_class(problem(services(4, 36)))
    words = drawn_words(domain, Random(1))
    assert Columns(domain, words).words() == words == States(domain, words).words()


def test_a_fleet_without_entities_has_no_parts() -> None:
    domain = compile_class(problem(in_chain(3)))
    columns = Columns(domain, [])
    columns.strip()
    assert columns.words() == []
    assert columns.next_parts({"c2": "on"}).tolist() == []


@given(questions(), st.randoms(use_true_random=False))
def test_columns_are_stripped_as_words_are(question: Question, random: Random) -> None:
    domain = compile_class(question.problem)
    words = drawn_words(domain, random)
    columns, states = Columns(domain, words), States(domain, words)
    columns.strip()
    states.strip()
    assert columns.words() == states.words() == [domain.strip(word) for word in words]


@given(questions(), st.randoms(use_true_random=False))
def test_one_pass_says_what_each_entity_is_planned(question: Question, random: Random) -> None:
    domain = compile_class(question.problem)
    goal, words = question.desired, words_around(domain, question, random)
    columns = Columns(domain, words)
    numbers, alone = columns.next_parts(goal).tolist(), columns.tabled(goal).tolist()
    assert numbers == States(domain, words).next_parts(goal)
    for word, number, by_columns in zip(words, numbers, alone, strict=True):
        assert told(domain, number) == begins(plan(domain, word, goal))
        assert by_columns == (number if tables_tell(domain, word, goal) else End.UNKNOWN)


@given(questions(), questions(), st.randoms(use_true_random=False))
def test_the_first_of_several_factors_is_told(one: Question, two: Question, random: Random) -> None:
    both = side_by_side(one, two)
    domain = compile_class(both.problem)
    words = words_around(domain, both, random)
    numbers = Columns(domain, words).next_parts(both.desired).tolist()
    assert numbers == States(domain, words).next_parts(both.desired)


@given(st.randoms(use_true_random=False))
def test_columns_alone_say_what_stages_alone_say_of_every_state(random: Random) -> None:
    drawn_problem, goal = layered(random)
    domain = compile_class(drawn_problem)
    for part in factors_of(domain, goal, Memory.TRUSTED).parts:
        moves = PolicyCache(part.task, ALL, stages=subgoals_of(part.task, ALL))
        hold_to_tables(domain, part.task, moves)


@given(questions())
def test_columns_alone_say_what_is_worked_out_ahead_of_every_state(question: Question) -> None:
    domain = compile_class(question.problem)
    for part in factors_of(domain, question.desired, Memory.TRUSTED).parts:
        moves = PolicyCache(part.task, ALL, ahead=solve(part.task, ALL))
        hold_to_tables(domain, part.task, moves)


def hold_to_tables(domain: Domain, task: Task, moves: PolicyCache) -> None:
    """Nothing is asked plainly here: what columns do not tell, tables do not."""
    numbers, states = numbering(domain), knowable(task, ALL)
    read = table(moves, task, numbers)
    if states is None:
        return
    others = sum(one.unknown for one in domain.fields.values() if not one.whole & task.within)
    columns = Columns(domain, [state | others for state in states])
    ends = {End.MET: MET, End.UNKNOWN: UNKNOWN, End.WALLED: WALLED}
    rows = [moves.next(state) for state in states]
    assert read.read(columns.sheet).tolist() == [
        ends[row] if isinstance(row, End) else numbers[row[-1]] for row in rows
    ]


@pytest.mark.parametrize("parts", [independent(40), in_chain(40), services(4, 36)])
def test_many_variables_are_read_at_once(parts: Parts) -> None:
    domain = compile_class(problem(parts))
    words = [domain.strip(word) for word in drawn_words(domain, Random(1), 300)]
    goal = dict.fromkeys(domain.fields, "on")
    numbers = Columns(domain, words).next_parts(goal).tolist()
    assert numbers == States(domain, words).next_parts(goal)
    assert min(numbers) >= 0


def test_what_would_make_too_large_a_table_is_not_read_at_once() -> None:
    domain = compile_class(problem(in_chain(7)))
    goal = dict.fromkeys(domain.fields, "on")
    (part,) = factors_of(domain, goal, Memory.TRUSTED).parts
    moves = PolicyCache(part.task, 0, ahead=solve(part.task, 10_000))
    read = table(moves, part.task, numbering(domain))
    off, on = (domain.start(dict.fromkeys(goal, value), {}) for value in ("off", "on"))
    assert read.read(Columns(domain, [off, on]).sheet).tolist() == [UNKNOWN, MET]


def test_what_no_table_tells_is_planned_by_itself() -> None:
    random = Random(2)
    domain = compile_class(problem(entangled(12, random)))
    goal = drawn(domain.problem, random)
    words = [domain.start(drawn(domain.problem, random), {}) for _ in range(6)]
    numbers = Columns(domain, words * 2).next_parts(goal, budget=40).tolist()
    assert numbers == States(domain, words * 2).next_parts(goal, budget=40)
    assert End.UNKNOWN in numbers
    assert numbers[:6] == numbers[6:]


def test_columns_alone_tell_of_doubts_and_of_who_is_as_desired() -> None:
    down, up = (Look("m", f"look_{value}", "k", "a", (value,)) for value in ("down", "up"))
    domain = compile_class(Problem({"a": ("unknown", "down", "up")}, {}, (down, up)))
    words = [domain.start({}, {"a": "up"}), domain.start({"a": "up"}, {}), domain.start({}, {})]
    columns = Columns(domain, words)
    numbers = {value: columns.tabled({"a": value}).tolist() for value in ("up", "down")}
    assert {value: [told(domain, one) for one in some] for value, some in numbers.items()} == {
        "up": [(up, "up"), (End.MET,), (up, "up")],
        "down": [(down, "down"), (End.WALLED,), (down, "down")],
    }


def test_a_variable_may_have_more_values_than_a_byte_holds() -> None:
    values = [str(number) for number in range(200)]
    look = Look("m", "look", "k", "a", tuple(values))
    step = Step("m", "step", "k", (Change("a", ("*",), "199"),))
    domain = compile_class(problem([look, step]))
    words = [domain.start({"a": value}, {}) for value in values]
    words += [domain.start({}, {"a": value}) for value in values]
    columns = Columns(domain, words)
    assert columns.words() == words
    numbers = columns.next_parts({"a": "199"}).tolist()
    assert numbers == States(domain, words).next_parts({"a": "199"})
