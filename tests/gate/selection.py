"""The tests of real parts that a change is held to: always, by what it touches, or in turn.

Pure: names of tests in, names of tests out, so that each process of pytest chooses the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

# Assumed of a test that no run has measured yet.
UNMEASURED_S: Final = 10.0


class Area(msgspec.Struct, frozen=True):
    """A part of the product and the tests of real parts that it has.

    `source` holds prefixes of paths; `always` and `tests` hold selectors: a file, a test of it, or
    one of its cases, as pytest names them.
    """

    source: tuple[str, ...]
    always: tuple[str, ...]
    tests: tuple[str, ...]


class Areas(msgspec.Struct, frozen=True):
    """The table `tests/areas.toml`; a change that stays below `pages` touches nothing that runs."""

    pages: tuple[str, ...]
    apart: tuple[str, ...]
    area: dict[str, Area]


class Choice(msgspec.Struct, frozen=True):
    """What one run of pytest keeps of the tests that it collects.

    `always` are kept; of `touched` as many as fit into `budget_s` seconds of tests; of the rest
    those whose turn it is, `turn` of `turns`. A file's tests share their fixtures and so their
    turn, but for files named in `apart`.
    """

    always: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    budget_s: float = 0
    turn: int = 0
    turns: int = 0
    apart: tuple[str, ...] = ()


def touched_areas(areas: Areas, changed: Iterable[str]) -> list[str]:
    """The areas that have a changed file among their own."""
    paths = list(changed)
    return [
        name
        for name, area in areas.area.items()
        if any(path.startswith((*area.source, *_files(area.tests))) for path in paths)
    ]


def only_pages(areas: Areas, changed: Iterable[str]) -> bool:
    """Whether nothing changed but pages, which no process reads."""
    return all(path.startswith(areas.pages) for path in changed)


def matches(name: str, selectors: Iterable[str]) -> bool:
    """Whether a selector names this test, its file, or the test of which it is a case."""
    return any(
        name == one or name.startswith((f"{one}::", f"{one}[", f"{one}/")) for one in selectors
    )


def chosen(names: Sequence[str], choice: Choice, seconds: Mapping[str, float]) -> set[str]:
    """The tests to be kept of those collected."""
    kept = {name for name in names if matches(name, choice.always)}
    kept |= _within_budget([one for one in names if one not in kept], choice, seconds)
    if choice.turns:
        kept |= _in_turn(names, choice, seconds)
    return kept


def cost(name: str, seconds: Mapping[str, float]) -> float:
    return seconds.get(name, UNMEASURED_S)


def _within_budget(names: Sequence[str], choice: Choice, seconds: Mapping[str, float]) -> set[str]:
    """The cheapest first: more of them fit, and the dearest have their turn."""
    left_s, kept = choice.budget_s, set[str]()
    touched = [name for name in names if matches(name, choice.touched)]
    for name in sorted(touched, key=lambda one: (cost(one, seconds), one)):
        left_s -= cost(name, seconds)
        if left_s < 0:
            break
        kept.add(name)
    return kept


def _in_turn(names: Sequence[str], choice: Choice, seconds: Mapping[str, float]) -> set[str]:
    """The tests of one turn: the longest groups are dealt first, to the turn with least so far.

    This is longest-processing-time scheduling (Graham, 1969), so turns take about as long each.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        file = name.partition("::")[0]
        groups.setdefault(name if file in choice.apart else file, []).append(name)
    lasts = {one: sum(cost(name, seconds) for name in group) for one, group in groups.items()}
    dealt_s = [0.0] * choice.turns
    kept: set[str] = set()
    for one in sorted(groups, key=lambda one: (-lasts[one], one)):
        turn = dealt_s.index(min(dealt_s))
        dealt_s[turn] += lasts[one]
        if turn == choice.turn % choice.turns:
            kept.update(groups[one])
    return kept


def _files(selectors: Iterable[str]) -> tuple[str, ...]:
    return tuple(one.partition("::")[0] for one in selectors)
