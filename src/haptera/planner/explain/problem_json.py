"""Problems and answers as JSON, in the form of `docs/reference/problem.md`."""

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from haptera.model.answers.explained import Explained
from haptera.model.answers.graph import noted
from haptera.model.chain import Chain, Find, Link, NoChain, Reason, ReasonKind
from haptera.model.errors import HapteraError
from haptera.model.parts import ANY, Change, Look, Requirement, Step
from haptera.planner.domain.problem import Problem, check, check_values

# What a problem in this form calls its one module.
MODULE: Final = "problem"
# Values of all variables together, unknowns too; steps and outcomes of looks, each a move.
VALUES_MAX: Final = 1_024
MOVES_MAX: Final = 4_096
COST_MAX: Final = 1_000_000_000
# Characters of a place or a text; what is longer is cut.
TOLD_CHARS_MAX: Final = 500

_PLACE: Final = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)
# How msgspec tells a path: by names and numbers, but for the keys of an object.
_STEP: Final = re.compile(r"\.(\w+)|\[(\d+)\]")
_SOME_KEY: Final = "[...]"


def _links(*forms: str) -> Meta:
    """One of these forms, distinguished by their keys."""
    return Meta(extra_json_schema={"oneOf": [{"$ref": f"#/$defs/{form}"} for form in forms]})


Values = Annotated[list[str], Meta(extra_json_schema={"minItems": 1})]
Conditions = Annotated[
    dict[str, str | Values],
    noted("For each variable or attribute named, the value or values that count."),
]
Cost = Annotated[int, noted("The cost of this part.", minimum=1, maximum=COST_MAX)]
Name = Annotated[str, noted("The name of the part; it is unique.")]
Known = dict[str, str]


class LookForm(msgspec.Struct, forbid_unknown_fields=True):
    """A look: finds out one variable."""

    name: Name
    at: Annotated[str, noted("The variable that is looked at.")]
    outcomes: Annotated[Values, noted("The values that it can find, the unknown not among them.")]
    requires: Conditions = {}
    excludes: Conditions = {}
    cost: Cost = 1


class StepForm(msgspec.Struct, forbid_unknown_fields=True):
    """A step: changes variables."""

    name: Name
    changes: Annotated[
        dict[str, tuple[str | Values, str]],
        noted(
            "For each variable changed: `from`, a value, the unknown, several of these, or `*`"
            " for every state but known `to`; and `to`, a value, with `?` where only a look can"
            " tell.",
            minProperties=1,
        ),
    ]
    requires: Conditions = {}
    excludes: Conditions = {}
    cost: Cost = 1


class ProblemForm(msgspec.Struct, forbid_unknown_fields=True):
    """A problem: what can be known and done, what is known, and what should be."""

    variables: Annotated[
        dict[str, Values],
        noted("The values of each variable, the first its unknown. None ends in `?` or is `*`."),
    ] = {}
    attributes: Annotated[
        dict[str, str | None], noted("The entity's constants; null if it has none.")
    ] = {}
    looks: list[LookForm] = []
    steps: list[StepForm] = []
    observed: Annotated[Known, noted("Known values; the unknown value is ignored.")] = {}
    remembered: Annotated[Known, noted("Values that were known last, or are expected.")] = {}
    desired: Annotated[Known, noted("The values that must be known, all together.")] = {}


class LookLink(msgspec.Struct, forbid_unknown_fields=True):
    """Look, expecting this; `hoped` where more than a remembered value could be found."""

    look: Name
    expect: str
    hoped: bool


class DoLink(msgspec.Struct, forbid_unknown_fields=True):
    """Take this step."""

    do: Name


class ReasonForm(msgspec.Struct, forbid_unknown_fields=True):
    """Why there is no chain."""

    kind: ReasonKind
    variable: str | None
    text: str
    waits_for: Annotated[
        Known | UnsetType,
        noted("For `waits`: the borrowed values with which there is a chain."),
    ] = UNSET


class ChainAnswer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The chain; empty where the goal is met."""

    chain: list[Annotated[dict[str, Any], _links("LookLink", "DoLink")]]
    verdict: Literal["chain"] = "chain"
    cost: Annotated[int, noted("The cost of all links, in the best case.", minimum=0)]
    optimal: Annotated[bool, noted("Whether it is proven that no chain costs less.")]
    doubts: Annotated[bool, noted("Whether it assumes that a remembered value is wrong.")]
    states: Annotated[
        list[Known],
        noted("What is known at the start, stripped, and after each link.", minItems=1),
    ]
    reason: None = None
    expanded: Annotated[int, noted("The number of states that were searched.", minimum=0)]
    explained: Annotated[Explained | UnsetType, noted("Present if it was requested.")] = UNSET


class NoChainAnswer(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """No chain: proven (`none`), or given up (`budget`)."""

    chain: None = None
    verdict: Literal["none", "budget"]
    cost: None = None
    optimal: Literal[False] = False
    doubts: Literal[False] = False
    states: None = None
    reason: ReasonForm
    expanded: Annotated[int, noted("The number of states that were searched.", minimum=0)]
    explained: Annotated[Explained | UnsetType, noted("Present if it was requested.")] = UNSET


class Fault(msgspec.Struct, forbid_unknown_fields=True):
    """What is malformed, and where."""

    place: str
    text: str


class ErrorAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """The problem is malformed."""

    error: Fault


class ProblemQuestion(msgspec.Struct, frozen=True):
    """A problem with one start and one goal; all of it well formed."""

    problem: Problem
    observed: dict[str, str]
    remembered: dict[str, str]
    desired: dict[str, str]


def problem_from_json(data: object) -> ProblemQuestion:
    """Read a problem with its start and goal.

    Raises:
        HapteraError: it has another form, is malformed or too large, with the place.
    """
    try:
        form = msgspec.convert(data, ProblemForm)
    except msgspec.ValidationError as error:
        raise _misshapen(str(error), data) from error
    _check_size(form)
    problem = Problem(
        {name: tuple(values) for name, values in form.variables.items()},
        dict(form.attributes),
        tuple(_look(one) for one in form.looks),
        tuple(_step(one) for one in form.steps),
    )
    check(problem)
    check_values(problem, observed=form.observed, remembered=form.remembered, desired=form.desired)
    return ProblemQuestion(problem, form.observed, form.remembered, form.desired)


def answer_to_json(answer: Chain | NoChain) -> dict[str, Any]:
    """A chain, or the reason why there is none."""
    if isinstance(answer, Chain):
        return _built(
            ChainAnswer(
                chain=[_built(_link(one)) for one in answer.links],
                cost=answer.cost,
                optimal=answer.optimal,
                doubts=answer.doubts,
                states=[dict(state) for state in answer.states],
                expanded=answer.expanded,
            )
        )
    return _built(
        NoChainAnswer(
            reason=_reason(answer.reason),
            expanded=answer.expanded,
            verdict="budget" if answer.reason.kind is ReasonKind.BUDGET else "none",
        )
    )


def explained_to_json(explained: Explained) -> dict[str, Any]:
    """What there is to say of an answer."""
    built: dict[str, Any] = _as_given(msgspec.to_builtins(explained))
    return built


def error_to_json(error: HapteraError) -> dict[str, Any]:
    """What is malformed, and where; the advice belongs to the text."""
    text = error.what if error.do is None else f"{error.what} ({error.do})"
    return _built(ErrorAnswer(Fault(_cut(error.where or MODULE), _cut(text))))


def _misshapen(told: str, data: object) -> HapteraError:
    found = _PLACE.fullmatch(told)
    text, place = (told, "") if found is None else found.groups()
    before, some_key, after = place.partition(_SOME_KEY)
    if some_key:
        place = f"{before}[{_key(before, data)!r}]{after}"
    return HapteraError(text, where=f"{MODULE}{place}")


def _key(path: str, data: Any) -> str:
    """The key, in the object at this path, of the first value that has another form."""
    steps = [name or int(number) for name, number in _STEP.findall(path)]
    for one in steps:
        data = data[one]
    for key, value in data.items():
        alone: object = {key: value}
        for one in reversed(steps):
            alone = [alone] if isinstance(one, int) else {one: alone}
        try:
            msgspec.convert(alone, ProblemForm)
        except msgspec.ValidationError as error:
            if _SOME_KEY in str(error):  # And not what is only left out here.
                return str(key)
    raise AssertionError(f"a value at {path} has another form")


def _check_size(form: ProblemForm) -> None:
    values = sum(map(len, form.variables.values()))
    moves = sum(len(look.outcomes) for look in form.looks) + len(form.looks) + len(form.steps)
    if values > VALUES_MAX:
        raise HapteraError(f"more than {VALUES_MAX} values in all", where=f"{MODULE}.variables")
    if moves > MOVES_MAX:
        raise HapteraError(f"more than {MOVES_MAX} parts and outcomes in all", where=MODULE)
    parts: list[LookForm | StepForm] = [*form.looks, *form.steps]
    for part in parts:
        if part.cost > COST_MAX:
            place = f"{MODULE}.{part.name} cost"
            raise HapteraError(f"is more than {COST_MAX}", where=place)


def _built(form: msgspec.Struct) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(form)
    return built


def _cut(text: str) -> str:
    return text if len(text) <= TOLD_CHARS_MAX else f"{text[: TOLD_CHARS_MAX - 1]}…"


def _look(form: LookForm) -> Look:
    return Look(
        MODULE,
        form.name,
        MODULE,
        form.at,
        tuple(form.outcomes),
        _conditions(form.requires),
        _conditions(form.excludes),
        form.cost,
    )


def _step(form: StepForm) -> Step:
    return Step(
        MODULE,
        form.name,
        MODULE,
        tuple(_change(form.name, name, *pair) for name, pair in form.changes.items()),
        _conditions(form.requires),
        _conditions(form.excludes),
        form.cost,
    )


def _change(step: str, name: str, source: str | list[str], target: str) -> Change:
    if isinstance(source, list) and ANY in source:
        raise HapteraError(f"{ANY!r} stands alone", where=f"{MODULE}.{step} changes {name}")
    sources = tuple(source) if isinstance(source, list) else (source,)
    return Change(name, sources, target.removesuffix("?"), expected=target.endswith("?"))


def _conditions(form: Conditions) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(name, tuple(values) if isinstance(values, list) else (values,))
        for name, values in form.items()
    )


def _link(link: Link) -> LookLink | DoLink:
    if isinstance(link, Find):
        return LookLink(link.look.name, link.expect, link.hoped)
    return DoLink(link.step.name)


def _reason(reason: Reason) -> ReasonForm:
    waits_for = dict(reason.waits_for) if reason.waits_for else UNSET
    return ReasonForm(reason.kind, reason.variable, _as_given(reason.text), waits_for)


def _as_given(data: Any) -> Any:
    """Texts, and what is made of texts, with parts called as they were given."""
    match data:
        case str():
            return data.replace(f"{MODULE}.", "")
        case list():
            return [_as_given(one) for one in data]
        case dict():
            return {name: _as_given(one) for name, one in data.items()}
        case _:
            return data
