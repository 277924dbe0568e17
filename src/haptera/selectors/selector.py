"""Which entities a person means: `rack1n[1-4]`, `service:web@rack*`, `node:rack1* and power=off`.

One parser for the command line, for requests and for files.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from haptera.model.entity import EntityId
from haptera.model.errors import LimitError
from haptera.model.walltime import parse_duration_ms
from haptera.selectors.names import EVERY, Globs
from haptera.selectors.nodeset import NodeSet, fold, read_nodeset
from haptera.selectors.selector_ast import (
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
    Subject,
    parts_of,
)
from haptera.selectors.text_cursor import Reader

SELECTOR_BYTES_MAX: Final = 8_192
# How many names and comparisons may be joined, and how deep in parentheses and `not`.
PARTS_MAX: Final = 64
DEPTH_MAX: Final = 16
ALL: Final = "*"

_PATH: Final = r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*){0,3}"
_COMPARED: Final = re.compile(rf"(?P<path>{_PATH})\s*(?:(?P<sign>!?=)|(?P<but>not\s+)?in(?=[\s(]))")
_AGE: Final = re.compile(rf"age\s*\(\s*(?P<path>{_PATH})\s*\)\s*(?P<compare>[<>]=?)\s*")
_AGE_BEGUN: Final = re.compile(r"age\s*\(")
_AMOUNT: Final = re.compile(
    r"(?P<series>[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*(?:\[[A-Za-z0-9/._:#@+-]+\])?)"
    r"\s*(?P<compare>[<>]=?)\s*"
)
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?(?:e[+-]?[0-9]{1,2})?(?![A-Za-z0-9.])")
_DURATION: Final = re.compile(r"[0-9]{1,12}(?:ms|s|m|h|d)(?![A-Za-z0-9])")
_VALUE: Final = re.compile(r'\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[A-Za-z0-9._:/@%+-]+))')
_KIND: Final = re.compile(r"(?P<kind>[A-Za-z0-9][A-Za-z0-9._-]*):")
_AT: Final = re.compile(r"@")
_OPEN: Final = re.compile(r"\s*\(")
_CLOSE: Final = re.compile(r"\s*\)")
_COMMA: Final = re.compile(r"\s*,")
_AND: Final = re.compile(r"and(?=[\s(]|$)")
_OR: Final = re.compile(r"or(?=[\s(]|$)")
_NOT: Final = re.compile(r"not(?=[\s(])")
_RESERVED: Final = re.compile(r"(?:and|or|not|in)(?=[\s()]|$)")
_ESCAPED: Final = re.compile(r"\\(.)")

_DO: Final = "write a node-set, KIND:NAMES@NODES, power=off, age(agent)>1m; join by and, or, not"
_DO_VALUE: Final = 'write power=off, power!=off, power in (off,hung), or rack="" for none'
_DO_AMOUNT: Final = "write temp.inlet>35, in the unit of the series; an age is written age(NAME)>1m"
_DO_AGE: Final = "write age(agent)>1m, with ms, s, m, h or d"


@dataclass(frozen=True, slots=True)
class Selector:
    """What was read of a text; two of the same text are the same.

    >>> web = parse_selector("service:web@rack[1-4]n1")
    >>> web.could_mean(EntityId("service", "web", "rack2n1"))
    True
    >>> web.could_mean(EntityId("service", "web", "rack2n2"))
    False
    """

    text: str
    choice: Choice = field(compare=False, repr=False)

    def means(self, subject: Subject) -> bool:
        """Whether it means this entity, as it is now."""
        return self.choice.means(subject)

    def could_mean(self, entity: EntityId) -> bool:
        """Whether it may mean this entity in some state, for all that its name tells."""
        return self.choice.by_name(entity) is not False

    @property
    def by_name(self) -> bool:
        """Whether the name of an entity decides, whatever state it or its node is in."""
        parts = parts_of(self.choice)
        return all(isinstance(part, Pattern) and not part.groups for part in parts)

    @property
    def by_age(self) -> bool:
        """Whether it means others as time goes by, though nothing happens."""
        return any(isinstance(part, Age | Amount) for part in parts_of(self.choice))

    def nodes(self) -> NodeSet | None:
        """A set of nodes, all named one by one, that whatever it means is on; None: there is none.

        >>> [one.name for one in parse_selector("node:n[1-2] and power=off").nodes().members()]
        ['n1', 'n2']
        """
        parts = self.choice.parts if isinstance(self.choice, AllOf) else (self.choice,)
        for part in parts:
            if isinstance(part, Pattern) and part.on is not None and part.on.plain:
                return part.on
        return None

    def __str__(self) -> str:
        return self.text


def parse_selector(text: str) -> Selector:
    """Read a selector; docs/reference/selectors.md has its grammar.

    A bare node-set means the nodes and all that is on them; `*` is everything.

    Raises:
        HapteraError: the text is none.
    """
    if len(text.encode(errors="replace")) > SELECTOR_BYTES_MAX:
        raise LimitError(
            f"a selector longer than {SELECTOR_BYTES_MAX} bytes", do="use a shorter node-set"
        )
    reader = Reader(text, "selector")
    choice = _read_any(reader, 0)
    reader.end(_DO)
    if sum(1 for _ in parts_of(choice)) > PARTS_MAX:
        raise reader.error(f"more than {PARTS_MAX} names and comparisons", "ask for less at once")
    return Selector(text, choice)


def fold_entities(entities: Iterable[EntityId]) -> str:
    """The entities as one selector, sorted and short; what one command prints another takes.

    >>> from haptera.model.entity import node_id
    >>> web = [EntityId("service", name, node) for name in ("web", "db") for node in ("n1", "n2")]
    >>> fold_entities([*web, node_id("n1"), EntityId("module", "labnode", None)])
    'module:labnode or node:n1 or service:db,web@n[1-2]'
    """
    on_nodes: dict[tuple[str, str], set[str]] = {}
    names: dict[tuple[str, str], set[str]] = {}
    for one in set(entities):
        if one.node is None or one.kind == NODE:
            names.setdefault((one.kind, ""), set()).add(one.name)
        else:
            on_nodes.setdefault((one.kind, one.name), set()).add(one.node)
    for (kind, name), nodes in on_nodes.items():
        names.setdefault((kind, f"@{fold(nodes)}"), set()).add(name)
    return " or ".join(f"{kind}:{fold(names[kind, where])}{where}" for kind, where in sorted(names))


def _read_any(reader: Reader, depth: int) -> Choice:
    parts = _read_joined(reader, _OR, lambda: _read_all(reader, depth))
    return parts[0] if len(parts) == 1 else AnyOf(parts)


def _read_all(reader: Reader, depth: int) -> Choice:
    parts = _read_joined(reader, _AND, lambda: _read_one(reader, depth))
    return parts[0] if len(parts) == 1 else AllOf(parts)


def _read_joined(
    reader: Reader, word: re.Pattern[str], read: Callable[[], Choice]
) -> tuple[Choice, ...]:
    parts = [read()]
    reader.skip_spaces()
    while reader.take(word) is not None:
        parts.append(read())
        reader.skip_spaces()
    return tuple(parts)


def _read_one(reader: Reader, depth: int) -> Choice:
    reader.skip_spaces()
    at = reader.at
    if depth == DEPTH_MAX:
        raise reader.error(f"deeper than {DEPTH_MAX} levels", "use fewer parentheses and not")
    if reader.take(_NOT) is not None:
        return Not(_read_one(reader, depth + 1))
    if reader.take(_OPEN) is not None:
        inner = _read_any(reader, depth + 1)
        if reader.take(_CLOSE) is None:
            raise reader.error("a parenthesis that is not closed", "write a )", at)
        return inner
    if _RESERVED.match(reader.text, at) is not None:
        raise reader.error("something to select is missing", f"{_DO}; a node is written node:NAME")
    if (found := reader.take(_AGE)) is not None:
        return _read_age(reader, found)
    if _AGE_BEGUN.match(reader.text, at) is not None:
        raise reader.error("this does not compare an age", _DO_AGE)
    if (found := reader.take(_COMPARED)) is not None:
        return _read_comparison(reader, at, found)
    if (found := reader.take(_AMOUNT)) is not None:
        return _read_amount(reader, at, found)
    return _read_pattern(reader)


def _read_age(reader: Reader, found: re.Match[str]) -> Age:
    duration = reader.take(_DURATION)
    if duration is None:
        raise reader.error("a duration is missing", _DO_AGE)
    datum = _datum(reader, found.start("path"), found["path"])
    return Age(datum, found["compare"], parse_duration_ms(duration[0]))


def _read_amount(reader: Reader, at: int, found: re.Match[str]) -> Amount:
    number = reader.take(_NUMBER)
    if number is None:
        raise reader.error("a number is missing", _DO_AMOUNT)
    return Amount(found["series"], found["compare"], float(number[0]), at)


def _read_comparison(reader: Reader, at: int, found: re.Match[str]) -> Comparison:
    datum = _datum(reader, at, found["path"])
    if found["sign"] is not None:
        return Comparison(datum, (_read_value(reader),), otherwise=found["sign"] == "!=")
    reader.skip_spaces()
    if reader.take(_OPEN) is None:
        raise reader.error("the values are missing", _DO_VALUE)
    values = [_read_value(reader)]
    while reader.take(_COMMA) is not None:
        values.append(_read_value(reader))
    if reader.take(_CLOSE) is None:
        raise reader.error("a list of values that is not closed", "write a )")
    return Comparison(datum, tuple(values), otherwise=found["but"] is not None)


def _read_value(reader: Reader) -> str:
    found = reader.take(_VALUE)
    if found is None:
        raise reader.error("a value is missing", _DO_VALUE)
    return found["bare"] or _ESCAPED.sub(r"\1", found["quoted"] or "")


def _datum(reader: Reader, at: int, path: str) -> Datum:
    """NAME, KIND.NAME, or either with `desired.` or `last.` before the name.

    The name may be one of an extension: `ipmi.address`, `node.ipmi.address`.
    """
    *before, name = path.split(".")
    layer = StateLayer.KNOWN
    if layers := [one for one in before if one in list(StateLayer)]:
        layer = StateLayer(layers[0])
        before.remove(layer)
    if len(before) == 2 and before[0] == NODE:
        return Datum(f"{before[1]}.{name}", NODE, layer, at)
    if len(before) > 1:
        raise reader.error(f"{path!r} is not a variable", "write NAME, or KIND.NAME", at)
    return Datum(name, before[0] if before else None, layer, at)


def _read_pattern(reader: Reader) -> Pattern:
    at = reader.at
    found = reader.take(_KIND)
    if found is None:
        return Pattern(nodes=_named(read_nodeset(reader)), at=at)
    kind, names = found["kind"], read_nodeset(reader)
    if kind != NODE and names.groups:
        raise reader.error("groups contain nodes only", f"write {kind}:NAMES@@GROUP", at)
    where = reader.at
    if reader.take(_AT) is None:
        return Pattern(kind, _named(names), at=at)
    if kind == NODE:
        raise reader.error("a node is on itself", "write node:NAMES", where)
    return Pattern(kind, _named(names), _named(read_nodeset(reader)), at=at)


def _named(nodes: NodeSet) -> NodeSet | None:
    """These names; None for all."""
    return None if nodes.terms == [Globs((EVERY,))] else nodes
