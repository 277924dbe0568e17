"""Problems from elsewhere, answered whatever bytes come: a line in, its answer out."""

import json
from collections.abc import Callable, Iterable
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final, NoReturn

from haptera.model.answers.graph import DrawingView
from haptera.model.chain import Chain, NoChain
from haptera.model.errors import DuplicateError, HapteraError, LimitError, ParseError
from haptera.planner.domain.domain import compile_class
from haptera.planner.explain.drawing import Course, drawing
from haptera.planner.explain.explain import PlanQuestion, explain
from haptera.planner.explain.graph import graphs_of
from haptera.planner.explain.problem_json import (
    MODULE,
    ProblemQuestion,
    answer_to_json,
    error_to_json,
    explained_to_json,
    problem_from_json,
)
from haptera.planner.planner import plan
from haptera.planner.search.search_budget import SearchBudget

PROBLEM_BYTES_MAX: Final = 1_048_576
# More than a daemon affords: the caller waits here, and nothing else does. A search tries all
# moves in each state that it goes on from: where there are many, it gives up sooner.
EXPANSIONS_PROBLEM_MAX: Final = 20_000
TRIES_MAX: Final = 8_000_000
# To say all that there is to say of an answer takes a search for each of its parts: some ten
# seconds are enough.
WORK_EXPLAINING_MAX: Final = 50_000_000


class Outcome(StrEnum):
    """What came of a problem; a batch comes to the last of these that any of its problems did."""

    CHAIN = "chain"
    NONE = "none"
    BUDGET = "budget"
    MALFORMED = "malformed"


def answer_line(line: bytes) -> tuple[Outcome, dict[str, Any]]:
    """Answer a problem as JSON, or say what is malformed.

    >>> answer_line(b'{"desired": {"power": "on"}}')[1]["error"]["place"]
    'desired power'
    """
    return _answered(line, lambda _asked, _found: {})


def explained_line(
    line: bytes, *, work: int = WORK_EXPLAINING_MAX
) -> tuple[Outcome, dict[str, Any]]:
    """As `answer_line`; each answer also says what there is to say of it, as `explained`."""

    def told(one: PlanQuestion, found: Chain | NoChain) -> dict[str, Any]:
        one.budget.work = work
        return {"explained": explained_to_json(explain(one, found))}

    return _answered(line, told)


def _answered(
    line: bytes, more: Callable[[PlanQuestion, Chain | NoChain], dict[str, Any]]
) -> tuple[Outcome, dict[str, Any]]:
    try:
        question = problem_from_json(read(line))
    except HapteraError as error:
        return Outcome.MALFORMED, error_to_json(error)
    asked, found = _planned(question)
    answer = answer_to_json(found) | more(asked, found)
    return Outcome(answer["verdict"]), answer


def draw_line(line: bytes) -> DrawingView:
    """Draw a problem as JSON, and mark what it says of one entity, if it says anything.

    Raises:
        HapteraError: it is malformed, with the place, or more than can be drawn.
    """
    question = problem_from_json(read(line))
    asked, found = _planned(question)
    course = None
    if question.observed or question.remembered or question.desired:
        course = Course(asked.start, question.desired, found if question.desired else None)
    domain = asked.domain
    return drawing(domain, graphs_of(domain), MODULE, course, named=attrgetter("name"))


def read(line: bytes) -> object:
    """Read JSON more strictly than Python: no key twice, no number that is none.

    A byte order mark before it, as some editors write one, is not part of it.

    Raises:
        HapteraError: it is no JSON, or too long, with the place.
    """
    if len(line) > PROBLEM_BYTES_MAX:
        raise LimitError(f"is longer than {PROBLEM_BYTES_MAX} bytes", where=MODULE)
    try:
        return json.loads(
            line.decode("utf-8-sig").rstrip(), object_pairs_hook=_object, parse_constant=_constant
        )
    except UnicodeDecodeError as error:
        raise ParseError("is not UTF-8", where=f"byte {error.start + 1}") from error
    except json.JSONDecodeError as error:
        # One on a single line does not know which line of its file that is.
        row = f"line {error.lineno}, " if "\n" in error.doc else ""
        place = f"{row}column {error.colno}"
        raise ParseError(f"is not JSON: {error.msg}", where=place) from error
    except RecursionError as error:
        raise LimitError("is nested too deeply", where=MODULE) from error
    except ValueError as error:  # Python reads no number of thousands of digits.
        raise LimitError("holds a number that is too long", where=MODULE) from error


def _planned(question: ProblemQuestion) -> tuple[PlanQuestion, Chain | NoChain]:
    """The question as it is put to the planner, and its answer."""
    domain = compile_class(question.problem)
    start = domain.start(question.observed, question.remembered)
    states_max = min(EXPANSIONS_PROBLEM_MAX, TRIES_MAX // max(1, len(domain.moves)))
    found = plan(domain, start, question.desired, SearchBudget(states_max))
    return PlanQuestion(domain, start, question.desired, SearchBudget(states_max)), found


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise DuplicateError(f"the key {key!r} is given twice in one object", where=MODULE)
        found[key] = value
    return found


def _constant(name: str) -> NoReturn:
    raise ParseError(f"is not JSON: {name} is no number", where=MODULE)
