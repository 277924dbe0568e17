"""Pieces of a site file's text: keys and values as YAML has them, what is alike folded."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from haptera.selectors.nodeset import fold, natural

# YAML takes no key of over 1,024 characters in one line.
KEY_CHARS_MAX: Final = 800

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*|[0-9]+(?:ms|[smhd])")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.,:@\[\]-]*")
_WORDS: Final = {"null", "true", "false"}
_ESCAPES: Final = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}

Fact = TypeVar("Fact")


def alike(facts: Mapping[str, Sequence[Fact]]) -> dict[tuple[str, ...], list[Fact]]:
    """The facts that hold on just the same nodes together; some nodes may have none at all."""
    nodes: dict[Fact, list[str]] = {}
    for node, some in facts.items():
        for fact in some:
            nodes.setdefault(fact, []).append(node)
    found: dict[tuple[str, ...], list[Fact]] = {}
    for fact, some_nodes in nodes.items():
        found.setdefault(tuple(sorted(some_nodes)), []).append(fact)
    if bare := sorted(node for node, some in facts.items() if not some):
        found.setdefault(tuple(bare), [])
    return found


def folded(nodes: Sequence[str]) -> list[str]:
    """The nodes as a node-set, or as several where one would be too long for a key."""
    text = fold(nodes)
    if len(text) <= KEY_CHARS_MAX:
        return [text]
    ordered, half = sorted(nodes, key=natural), len(nodes) // 2
    return [*folded(ordered[:half]), *folded(ordered[half:])]


def titled(title: str, lines: Iterable[str]) -> list[str]:
    """The lines under a title, with an empty one before; nothing without lines."""
    inner = [f"  {line}" for line in lines]
    return ["", f"{title}:", *inner] if inner else []


def braced(value: str | int) -> str | int:
    """As a template has it."""
    return value.replace("{", "{{").replace("}", "}}") if isinstance(value, str) else value


def yaml_value(value: str | int) -> str:
    """One value, in quotes where it must be."""
    if isinstance(value, int):
        return str(value)
    return value if _PLAIN.fullmatch(value) and value not in _WORDS else quoted(value)


def yaml_key(text: str) -> str:
    """One key, in quotes where it must be."""
    return text if _PLAIN_KEY.fullmatch(text) and text not in _WORDS else quoted(text)


def quoted(text: str) -> str:
    """The text in double quotes, in one line."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f"\\U{ord(character):08X}"
