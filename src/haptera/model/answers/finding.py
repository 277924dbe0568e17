"""What is wrong, or may be, with what modules declare and sites desire: findings, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
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
    UNDECLARED_CODE = "undeclared-code"
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
        Level.ERROR, "The conditions of a look contradict each other: it can never run."
    ),
    Rule.NEVER_APPLIES: About(
        Level.ERROR, "The conditions of a step contradict each other: it can never run."
    ),
    Rule.NEVER_KEPT: About(
        Level.ERROR, "The result of a step is forgotten at once, wherever the step is taken."
    ),
    Rule.NO_LOOK: About(
        Level.ERROR, "Steps change a variable that no look reads: their outcome is never known."
    ),
    Rule.MAY_BE_LOST: About(
        Level.WARNING, "The result of a step is forgotten at once in some states."
    ),
    Rule.NEVER_COMES_UP: About(
        Level.WARNING, "A part needs values that never occur: it never runs."
    ),
    Rule.DEAD_END: About(
        Level.WARNING,
        "A look can find a value that no step leads to, and no part leads away from it.",
    ),
    Rule.HOPE_REPEATS: About(
        Level.WARNING, "A chain may hope for a reading, get another, and begin again for ever."
    ),
    Rule.UNDOES: About(Level.WARNING, "Two modules undo each other's results."),
    Rule.SPLIT_GROUNDS: About(
        Level.NOTE, "A reading stays known in states where only another look could find it."
    ),
    Rule.UNSERVED: About(
        Level.NOTE, "A part requires a variable that none of the modules looks at or changes."
    ),
    Rule.ONE_WAY: About(
        Level.NOTE, "A step sets a variable to a value that no part leads away from."
    ),
    Rule.UNREACHABLE_VALUE: About(Level.NOTE, "A value never occurs."),
    Rule.UNKNOWABLE_GOAL: About(
        Level.ERROR, "The desired values can never be known together, so they are never reached."
    ),
    Rule.NO_MODULE: About(
        Level.ERROR, "The desired values need a module that the site does not list."
    ),
    Rule.NO_WAY: About(Level.ERROR, "No part leads to a desired value, from anywhere."),
    Rule.NODE_FORBIDS: About(
        Level.WARNING, "The desired values of a node exclude those of an entity on it."
    ),
    Rule.NEVER_PERMITTED: About(
        Level.WARNING, "A node has neither an agent nor a gate that could permit disruptive steps."
    ),
    Rule.NO_WAY_FROM: About(
        Level.WARNING,
        "From some value of a variable, no part leads to the desired value.",
    ),
    Rule.WRONG_SETTING: About(
        Level.ERROR,
        "A module is given a setting that it does not take, or lacks one that it needs.",
    ),
    Rule.OPEN_SECRET: About(
        Level.ERROR, "A setting that its module declares as a secret is in the site file."
    ),
    Rule.UNDECLARED_SETTINGS: About(
        Level.WARNING, "A module is given settings, and does not declare which it takes."
    ),
    Rule.UNDECLARED_CODE: About(
        Level.WARNING, "A setting looks like a command or a path, and is not declared as code."
    ),
    Rule.NOT_CHECKED: About(Level.NOTE, "A check was skipped because it would be too large."),
}

# Knowledge cannot hold, whatever the state: such a module is not planned with.
REFUSED: Final = frozenset({Rule.MALFORMED, Rule.NEVER_OPENS, Rule.NEVER_APPLIES, Rule.NEVER_KEPT})


@dataclass(frozen=True, slots=True)
class Example:
    """A state that shows the fault, and what a part makes of it, if one is taken there.

    Attributes are those that conditions of the kind's parts name; null where there is none.
    Variables that are neither known nor remembered are unknown.
    """

    attributes: Mapping[str, str | None]
    known: Values
    remembered: Values
    part: str | None
    known_after: Values
    remembered_after: Values


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
