"""Whether a selector can mean anything: the kinds, variables, values and groups that it names."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from haptera.kinds import KINDS
from haptera.kinds.extensions import node_kind
from haptera.model.answers.views import Condition
from haptera.model.declared.desired_check import nearest
from haptera.model.declared.schema import Kind
from haptera.model.errors import HapteraError, ParseError
from haptera.selectors.names import GroupName
from haptera.selectors.selector import Selector
from haptera.selectors.selector_ast import (
    CONDITION,
    NODE,
    Age,
    AllOf,
    Amount,
    AnyOf,
    Choice,
    Comparison,
    Datum,
    Not,
    Pattern,
    StateLayer,
)
from haptera.selectors.text_cursor import place

_ANY_TEXT: Final[Sequence[str]] = ()
_UNSET: Final = ""


def check_selector(selector: Selector, kinds: Mapping[str, Kind] = KINDS) -> Selector:
    """The selector, unless it names what there is not, and so would never mean anything.

    Raises:
        HapteraError: it does.
    """
    _Meaning(selector.text, kinds).of(selector.choice)
    return selector


class _Meaning:
    """Tells the kinds of all that a part of this text can mean."""

    def __init__(self, text: str, kinds: Mapping[str, Kind]) -> None:
        self._text = text
        self._kinds = kinds

    def of(self, choice: Choice) -> set[str]:
        match choice:
            case Pattern():
                return self._of_pattern(choice)
            case Comparison(datum, values):
                datum = self._resolved(datum)
                return self._of_datum(datum, self._compared(datum, values))
            case Age(datum):
                datum = self._resolved(datum)
                return self._of_datum(datum, self._aged(datum))
            case Amount():
                return set(self._kinds)  # what modules measure, only a parent knows
            case AllOf(parts):
                return self._of_all(parts)
            case AnyOf(parts):
                return set().union(*map(self.of, parts))
            case Not(part):
                self.of(part)
                return set(self._kinds)

    def _resolved(self, datum: Datum) -> Datum:
        """As one of an extension, where that is what the name before the dot is."""
        names = (name for kind in self._kinds.values() for name in kind.names)
        extends = any(name.startswith(f"{datum.kind}.") for name in names)
        return datum.resolved(self._kinds) if extends else datum

    def _of_pattern(self, pattern: Pattern) -> set[str]:
        for nodes in (pattern.names, pattern.nodes):
            for group in () if nodes is None else nodes.groups:
                self._check_group(group, pattern.at)
        if pattern.kind is None:
            return set(self._kinds)
        if pattern.kind not in self._kinds:
            do = nearest(pattern.kind, self._kinds)
            raise self._error(f"there is no kind {pattern.kind!r}", do, pattern.at)
        return {pattern.kind}

    def _of_datum(self, datum: Datum, kinds: Iterable[str]) -> set[str]:
        """What is on a node has all that its node has, as `node.NAME`."""
        return set(self._kinds) if datum.kind == NODE else set(kinds)

    def _of_all(self, parts: Iterable[Choice]) -> set[str]:
        left = set(self._kinds)
        for part in parts:
            both = left & self.of(part)
            if not both:
                what = f"this can never be true of a {' or a '.join(sorted(left))}"
                do = "join with or; values of its node are called node.NAME"
                raise self._error(what, do, _place_of(part))
            left = both
        return left

    def _compared(self, datum: Datum, values: Iterable[str]) -> list[str]:
        found = {kind.name: _values(kind, datum) for kind in self._asked(datum)}
        having = {name: some for name, some in found.items() if some is not None}
        if not having:
            raise self._no_datum(datum)
        for value in values:
            if all(some is not _ANY_TEXT and value not in some for some in having.values()):
                known = {one or '""' for some in having.values() for one in some}
                do = nearest(value, known)
                raise self._error(f"{datum} cannot be {value!r}", do, datum.at)
        return list(having)

    def _aged(self, datum: Datum) -> list[str]:
        asked = self._asked(datum)
        having = [one.name for one in asked if datum.name == CONDITION or one.variable(datum.name)]
        if datum.layer is not StateLayer.KNOWN or not having:
            names = {variable.name for kind in asked for variable in kind.variables}
            do = nearest(datum.name, {*names, CONDITION})
            raise self._error(f"{datum} has no age", do, datum.at)
        return having

    def _asked(self, datum: Datum) -> list[Kind]:
        """The kinds that can have it."""
        if datum.kind is None:
            return list(self._kinds.values())
        if datum.kind not in self._kinds:
            do = nearest(datum.kind, self._kinds)
            raise self._error(f"there is no kind {datum.kind!r}", do, datum.at)
        return [self._kinds[datum.kind]]

    def _no_datum(self, datum: Datum) -> HapteraError:
        kinds = self._asked(datum)
        names = {name for kind in kinds for name in kind.names} | {CONDITION}
        whose = "nothing" if datum.kind is None else f"no {datum.kind}"
        what = " ".join(filter(None, [whose, "has a", datum.layer, repr(datum.name)]))
        return self._error(what, nearest(datum.name, names), datum.at)

    def _check_group(self, group: GroupName, at: int) -> None:
        sources = [one.name for one in node_kind().attributes]
        if group.source is not None and group.source not in sources:
            what = f"{group}: no attribute of nodes is called {group.source!r}"
            raise self._error(what, nearest(group.source, sources), at)

    def _error(self, what: str, do: str, at: int) -> HapteraError:
        return ParseError(what, where=place("selector", self._text, at), do=do)


def _values(kind: Kind, datum: Datum) -> Sequence[str] | None:
    """What the datum of an entity of this kind can be; None where it has none such."""
    if (variable := kind.variable(datum.name)) is not None:
        values = [str(one) for one in variable.values]
        return [_UNSET, *values[1:]] if datum.layer is StateLayer.DESIRED else values
    if datum.layer is StateLayer.LAST:
        return None
    if kind.plain_named(datum.name) is not None:
        return _ANY_TEXT
    if datum.layer is StateLayer.DESIRED:
        return None
    if datum.name == CONDITION:
        return [one.value for one in Condition]
    return None if kind.attribute(datum.name) is None else _ANY_TEXT


def _place_of(choice: Choice) -> int:
    match choice:
        case Comparison(datum) | Age(datum):
            return datum.at
        case Pattern(at=at) | Amount(at=at):
            return at
        case AllOf(parts) | AnyOf(parts):
            return _place_of(parts[0])
        case Not(part):
            return _place_of(part)
