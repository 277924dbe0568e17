"""What is wrong, or may be, with what modules declare and sites desire: findings, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

Values = Mapping[str, str]


class Level(StrEnum):
    """How grave it is; as SARIF has these words."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Rule(StrEnum):
    """Which fault it is: once published, a name keeps its meaning."""

    # Of what modules declare.
    MALFORMED = "malformed"
    NEVER_OPENS = "never-opens"
    NEVER_APPLIES = "never-applies"
    NEVER_KEPT = "never-kept"
    NO_LOOK = "no-look"
    MAY_BE_LOST = "may-be-lost"
    NEVER_COMES_UP = "never-comes-up"
    DEAD_END = "dead-end"
    HOPE_REPEATS = "hope-repeats"
    UNDOES = "undoes"
    SPLIT_GROUNDS = "split-grounds"
    UNSERVED = "unserved"
    ONE_WAY = "one-way"
    UNREACHABLE_VALUE = "unreachable-value"
    # Of what is desired.
    UNKNOWABLE_GOAL = "unknowable-goal"
    NO_MODULE = "no-module"
    NO_WAY = "no-way"
    NO_WAY_FROM = "no-way-from"
    NODE_FORBIDS = "node-forbids"
    NEVER_PERMITTED = "never-permitted"
    WRONG_SETTING = "wrong-setting"
    OPEN_SECRET = "open-secret"
    UNDECLARED_SETTINGS = "undeclared-settings"
    # Of the lint itself.
    NOT_CHECKED = "not-checked"


@dataclass(frozen=True, slots=True)
class About:
    """What a rule finds, in one sentence, and how grave that is."""

    level: Level
    text: str


RULES: Final[Mapping[Rule, About]] = {
    Rule.MALFORMED: About(Level.ERROR, "What a module declares cannot be planned with at all."),
    Rule.NEVER_OPENS: About(
        Level.ERROR, "The conditions of a look contradict each other: it can never be open."
    ),
    Rule.NEVER_APPLIES: About(
        Level.ERROR, "The conditions of a step contradict each other: it can never be taken."
    ),
    Rule.NEVER_KEPT: About(
        Level.ERROR, "What a step brings about is forgotten at once, wherever the step is taken."
    ),
    Rule.NO_LOOK: About(
        Level.ERROR, "Steps change a variable that no look finds: what came of them, none can tell."
    ),
    Rule.MAY_BE_LOST: About(
        Level.WARNING, "What a step brings about is forgotten at once in some states."
    ),
    Rule.NEVER_COMES_UP: About(
        Level.WARNING, "A part counts on values that never come about: it is never its turn."
    ),
    Rule.DEAD_END: About(
        Level.WARNING,
        "A value that no step leads to can be found, and no part leads on.",
    ),
    Rule.HOPE_REPEATS: About(
        Level.WARNING, "A look may hope, find something else, and come to hope again for ever."
    ),
    Rule.UNDOES: About(
        Level.WARNING, "Of two modules, each takes away what the other brings about."
    ),
    Rule.SPLIT_GROUNDS: About(
        Level.NOTE, "What one look has found stays known where only another could find it."
    ),
    Rule.UNSERVED: About(
        Level.NOTE, "A part requires a variable that none of the modules looks at or changes."
    ),
    Rule.ONE_WAY: About(
        Level.NOTE, "A step brings a variable to a value from which no part leads to another."
    ),
    Rule.UNREACHABLE_VALUE: About(Level.NOTE, "A value never comes about."),
    Rule.UNKNOWABLE_GOAL: About(
        Level.ERROR, "The desired values can never be known at once, so they are never met."
    ),
    Rule.NO_MODULE: About(
        Level.ERROR, "A module that the desired values need is not among those of the site."
    ),
    Rule.NO_WAY: About(Level.ERROR, "No part leads to a desired value, from anywhere."),
    Rule.NODE_FORBIDS: About(
        Level.WARNING, "What is desired of a node rules out what is desired of an entity on it."
    ),
    Rule.NEVER_PERMITTED: About(
        Level.WARNING, "A node has neither an agent nor a gate that could permit what disturbs it."
    ),
    Rule.NO_WAY_FROM: About(
        Level.WARNING,
        "Where a variable has come to a certain value, no part leads on to the desired one.",
    ),
    Rule.WRONG_SETTING: About(
        Level.ERROR,
        "A module is given a setting that it does not take, or lacks one that it needs.",
    ),
    Rule.OPEN_SECRET: About(
        Level.ERROR, "A setting that its module calls a secret stands in the site file."
    ),
    Rule.UNDECLARED_SETTINGS: About(
        Level.WARNING, "A module is given settings, and does not declare which it takes."
    ),
    Rule.NOT_CHECKED: About(Level.NOTE, "A check would have been too large, and was not made."),
}

# Knowledge cannot hold, whatever the state: such a module is not planned with.
REFUSED: Final = frozenset({Rule.MALFORMED, Rule.NEVER_OPENS, Rule.NEVER_APPLIES, Rule.NEVER_KEPT})


@dataclass(frozen=True, slots=True)
class Example:
    """A state that shows the fault, and what a part makes of it.

    `attributes` are those of the class, as far as parts mention them. Variables that neither
    `known` nor `remembered` name are unknown. `part` is the path of the part that is taken
    there, if one is; `known_after` and `remembered_after` are the state then.
    """

    attributes: Mapping[str, str | None]
    known: Values
    remembered: Values
    part: str | None = None
    known_after: Values = field(default_factory=dict)
    remembered_after: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: which, of what, in words, with examples and what to do, where there are any.

    `place` is a part (`labnode.switch_on`), a variable (`node.power`), a kind, or entities
    (`service:web@n[1-4]`). `part` is the part that it is about, or the first of those that concern
    the `variable` that it is about.
    """

    rule: Rule
    place: str
    text: str
    kind: str
    part: str | None = None
    variable: str | None = None
    examples: tuple[Example, ...] = ()
    fix: str | None = None

    @property
    def level(self) -> Level:
        return RULES[self.rule].level

    @property
    def module(self) -> str | None:
        """The module whose part it is about."""
        return None if self.part is None else self.part.partition(".")[0]
