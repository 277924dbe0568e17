"""Values that follow the numbers in nodes' names, `10.0.1.{n+10}`: many written as one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from haptera.selectors.names import split
from haptera.site.model.nodes import holes
from haptera.site.syntax.yaml_text import braced

# Numbers as long as this are none to count with.
_DIGITS_MAX: Final = 15


def templates(values: Mapping[str, str]) -> dict[str, str]:
    """For each node a template that is its value when filled; those of many are the same.

    >>> templates({"r1n01": "10.0.1.1", "r1n02": "10.0.1.2", "login": "gate"})
    {'r1n01': '10.0.1.{n:d}', 'r1n02': '10.0.1.{n:d}', 'login': 'gate'}
    """
    shapes: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for name, value in values.items():
        shapes.setdefault((split(name).texts, split(value).texts), []).append(name)
    found = {name: str(braced(value)) for name, value in values.items()}
    for names in shapes.values():
        found.update(_fitted({name: values[name] for name in names}, 0))
    return found


def _fitted(values: Mapping[str, str], dimension: int) -> Iterator[tuple[str, str]]:
    """One template for all where there is one; else for those of one number each, and so on."""
    if len(set(values.values())) < 2:
        return
    template = _template(values)
    if template is not None:
        yield from ((name, template) for name in values)
        return
    parts: dict[str, dict[str, str]] = {}
    for name, value in values.items():
        numbers = split(name).numbers
        if dimension < len(numbers) - 1:
            parts.setdefault(numbers[dimension], {})[name] = value
    for part in parts.values():
        yield from _fitted(part, dimension + 1)


def _template(values: Mapping[str, str]) -> str | None:
    """The template that all these values come of; names are of one shape, and so are values."""
    rows = [split(name).numbers for name in values]
    named = holes(next(iter(values)))
    columns = [[row[at] for row in rows] for at in range(len(named))]
    texts = split(next(iter(values.values()))).texts
    written = [split(value).numbers for value in values.values()]
    pieces = [str(braced(texts[0]))]
    for at, text in enumerate(texts[1:]):
        hole = _hole([row[at] for row in written], columns, named)
        if hole is None:
            return None
        pieces += [hole, str(braced(text))]
    return "".join(pieces)


def _hole(
    numbers: Sequence[str], columns: Sequence[Sequence[str]], named: Sequence[str]
) -> str | None:
    """What stands for these numbers: themselves, or a number of the name and what is added."""
    if len(set(numbers)) == 1:
        return numbers[0]
    if max(map(len, numbers)) > _DIGITS_MAX:
        return None
    for column, name in zip(columns, named, strict=True):
        if list(column) == list(numbers):
            return f"{{{name}}}"
        if max(map(len, column)) <= _DIGITS_MAX:
            added = {int(one) - int(other) for one, other in zip(numbers, column, strict=True)}
            if len(added) == 1 and all(str(int(one)) == one for one in numbers):
                (more,) = added
                if more == 0:
                    return f"{{{name}:d}}"
                if not name.isdigit():  # in a sum that would be a number itself
                    return f"{{{name}{more:+d}}}"
    return None
