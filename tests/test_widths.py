"""No object has so many attributes that nobody can say what it is for."""

import ast

from tests.test_tidy import modules, parse

ATTRIBUTES_MAX = 15
# Wider ones, each with its number of attributes: it may shrink, and is then written here.
WIDE = {
    "DeclaredStep": 16,
    "Disk": 21,
    "Machine": 22,
    "Module": 18,
    "ModuleTalk": 24,
    "World": 21,
    "WorldProcess": 22,
    "_Host": 20,
    "_Process": 17,
}


def test_no_object_has_more_attributes_than_one_can_hold_in_mind() -> None:
    """Values are not counted: a frozen record of many fields has no state to be wrong in."""
    widths = {
        node.name: len(attributes(node))
        for path in modules()
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ClassDef) and not is_value(node)
    }

    assert {name: n for name, n in widths.items() if n > ATTRIBUTES_MAX} == WIDE


def attributes(node: ast.ClassDef) -> set[str]:
    """The fields that a class declares, and all that its methods set on themselves."""
    declared = {
        one.target.id
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    return declared | {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute)
        and isinstance(one.ctx, ast.Store)
        and isinstance(one.value, ast.Name)
        and one.value.id == "self"
    }


def is_value(node: ast.ClassDef) -> bool:
    decorated = " ".join(ast.unparse(one) for one in node.decorator_list)
    derived = {ast.unparse(one).rpartition(".")[2] for one in node.bases}
    return "frozen=True" in decorated or not derived.isdisjoint({"Struct", "NamedTuple"})


def test_an_attribute_is_counted_however_it_is_set() -> None:
    text = """
class Wide:
    declared: int = 0

    def __init__(self) -> None:
        self.one, self.two = 1, 2
        self.three: int = 3
        other.four = 4
"""
    (node,) = ast.parse(text).body

    assert isinstance(node, ast.ClassDef)
    assert attributes(node) == {"declared", "one", "two", "three"}
