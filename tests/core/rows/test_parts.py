"""Each part of an entity's record is written by its owner alone."""

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import haptera.core
from haptera.core.state.row import EntityState

CORE = Path(haptera.core.__file__).parent
PARTS = CORE / "state" / "entity"
# By part, where it is written beside its own class; nothing: by its own methods only.
OWNERS: dict[str, tuple[str, ...]] = {
    "desired": ("state/table.py",),
    "belief": (),
    "report": ("sync/",),
    "link": ("sync/", "state/table.py"),
    "work": ("act/",),
    "attempts": (),
    "stance": ("decide/",),
}
TYPES = get_type_hints(EntityState)
FIELDS = {(part, field.name) for part in OWNERS for field in fields(TYPES[part])}
MUTATING = {"add", "append", "clear", "discard", "extend", "pop", "setdefault", "update"}


def test_each_part_of_a_record_is_written_by_its_owner_alone() -> None:
    files = [path for path in CORE.rglob("*.py") if not path.is_relative_to(PARTS)]
    strangers = [
        f"{path.relative_to(CORE)}:{line}: {part}"
        for path in sorted(files)
        for part, line in written(ast.parse(path.read_text()))
        if not str(path.relative_to(CORE)).startswith(OWNERS[part])
    ]
    assert strangers == []


def test_every_part_has_an_owner() -> None:
    home = "haptera.core.state.entity."
    parts = {
        name for name, kind in TYPES.items() if getattr(kind, "__module__", "").startswith(home)
    }
    assert parts == OWNERS.keys()


def test_a_write_by_a_stranger_is_seen() -> None:
    code = "row.belief.known[name] = fact\nrow.work.looks.pop(path)\nx = row.belief.known\n"
    assert [*written(ast.parse(code))] == [("belief", 1), ("work", 2)]


def written(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The parts whose fields are assigned to or changed in place: `row.belief.known[x] = y`."""
    for node in ast.walk(tree):
        target: ast.expr | None = None
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            target = node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            target = node.func.value if node.func.attr in MUTATING else None
        while isinstance(target, ast.Attribute | ast.Subscript):
            match target:
                case ast.Attribute(ast.Attribute(attr=part), attr=name) if (part, name) in FIELDS:
                    yield part, target.lineno
            target = target.value
