"""A class drawn as graphs: what can be known, and the moves between."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Known = dict[str, str]
Conditions = dict[str, list[str]]


def noted(description: str, **schema: Any) -> Meta:
    """What the published schema says beside the type."""
    return Meta(description=description, extra_json_schema=schema)


Place = Annotated[int, noted("A state, by its place in `states`, from 0.", minimum=0)]


class RestView(msgspec.Struct, frozen=True):
    """What knowing the outcomes of a look rests on, beside the graph's own variables."""

    variable: str
    look: str
    outcomes: list[str]
    requires: Conditions


class EdgeView(msgspec.Struct, frozen=True, kw_only=True):
    """A part taken from one state to another; a look once for each outcome."""

    source: Annotated[int, noted("The state that it is taken from.", minimum=0)] = msgspec.field(
        name="from"
    )
    target: Annotated[int, noted("The state that it leads to.", minimum=0)] = msgspec.field(
        name="to"
    )
    part: str
    does: Literal["look", "step"]
    expect: Annotated[str | None, noted("The outcome of a look; null for a step.")]
    cost: Annotated[int, noted("The cost of this part.", minimum=1)]
    disruptive: Annotated[bool, noted("Whether it may interrupt running work.")]
    requires: Annotated[
        Conditions, noted("What must be known of variables that are not in this graph.")
    ]
    excludes: Annotated[
        Conditions,
        noted("What must be neither known nor remembered of variables not in this graph."),
    ]
    memory: Annotated[
        Conditions,
        noted(
            "Of variables in this graph that are not known here: the values with which it is"
            " possible, the unknown or `x?`, unless all are."
        ),
    ]
    leaves: Annotated[Known, noted("What it leaves expected: no longer known, remembered as this.")]
    beside: Annotated[
        dict[str, tuple[list[str], str]],
        noted("What it changes of variables that are not in this graph: from these, to this."),
    ]
    links: Annotated[list[int], noted("The links of the marked chain that use it, from 1.")] = []


class GraphView(msgspec.Struct, frozen=True, kw_only=True):
    """Variables with all that can be known of them, and all that leads from one to another."""

    variables: Annotated[dict[str, list[str]], noted("The values of each, the first its unknown.")]
    exact: Annotated[
        bool,
        noted(
            "False if other variables have too many states to search them all: the conditions"
            " on them are assumed to hold."
        ),
    ]
    rests: Annotated[
        list[RestView],
        noted("The looks at its variables that have conditions on other variables."),
    ]
    states: Annotated[
        list[Known],
        noted("The values that are known in each; a state may have no incoming edge."),
    ]
    edges: list[EdgeView]
    goal: Annotated[list[Place], noted("The states in which the marked goal is met.")] = []
    path: Annotated[list[Place], noted("The start, and where each link of the chain leads.")] = []


class StateView(msgspec.Struct, frozen=True):
    """What is known and remembered at once; all else is unknown."""

    known: Known
    remembered: Known


class TakenView(msgspec.Struct, frozen=True):
    """A link of a chain: a look with what it expects, or a step."""

    part: str
    expect: str | None
    hoped: Annotated[bool, noted("Whether more than a remembered value could be found.")]


class CourseView(msgspec.Struct, frozen=True, kw_only=True):
    """What is, what should be, and the chain from the one to the other."""

    goal: Known
    states: Annotated[list[StateView], noted("The stripped start, and the state after each link.")]
    chain: Annotated[list[TakenView] | None, noted("Null if there is none.")] = None
    cost: int | None = None
    doubts: Annotated[bool, noted("Whether it assumes that a remembered value is wrong.")] = False
    reason: Annotated[str | None, noted("Why there is no chain.")] = None


class DrawingView(msgspec.Struct, frozen=True, kw_only=True):
    """A class of a kind: in one graph, or in several where one would be too large to read."""

    title: Annotated[str, noted("The kind, the entity, or `problem`.")]
    attributes: Annotated[
        dict[str, str | None], noted("The class: the attributes that its parts require.")
    ]
    form: Literal["whole", "factored"]
    graphs: list[GraphView]
    course: CourseView | None = None
