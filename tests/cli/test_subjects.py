"""Errors of the command line are whole sentences: each says of what it is."""

import ast
from pathlib import Path

import haptera
from haptera.cli.output.printing import NO_SUBJECT, print_error
from haptera.model.errors import HapteraError, InputError

SOURCES = Path(haptera.__file__).parent
# Who calls these says of what they are.
SAID_BY_THE_CALLER = {
    "cli/input/plan_file.py": "read_plan adds the file",
    "core/modules/catalog.py": "the supervisor says of which module",
    "modules/declared/checking.py": "_Where says of which part",
}


def raised():
    """All errors that the sources make of texts at hand: their places, calls and texts."""
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text())
        functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
        for function in functions:
            said = {
                target.id: node.value
                for node in ast.walk(function)
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and node.args and name_of(node).endswith("Error"):
                    first = node.args[0]
                    first = said.get(first.id) if isinstance(first, ast.Name) else first
                    yield f"{path.relative_to(SOURCES)}:{node.lineno}", node, text_of(first)


def name_of(call):
    function = call.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def text_of(argument):
    """How a text begins, as far as it is at hand."""
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0]
    return argument.value if isinstance(argument, ast.Constant) else None


def test_an_error_that_begins_with_a_verb_has_a_place_that_it_is_of():
    looked_at = [
        (where, any(one.arg == "where" for one in node.keywords))
        for where, node, text in raised()
        if isinstance(text, str) and NO_SUBJECT.match(text)
        # A built-in one is caught near by, and is a part of another sentence there.
        if name_of(node) not in ("ValueError", "RuntimeError", "OSError", "TypeError")
    ]
    assert len(looked_at) > 20
    nameless = {where.split(":")[0] for where, placed in looked_at if not placed}
    assert nameless == SAID_BY_THE_CALLER.keys(), "say of what: where=…"


def test_the_place_is_the_subject_and_many_alike_are_one(capsys):
    some = [HapteraError("has no attribute bmc", where=f"node:n{one}", do="add it") for one in "12"]
    print_error(InputError(some))
    assert capsys.readouterr().err == "error: node:n[1-2] has no attribute bmc\n  add it\n"


def test_a_place_that_is_the_subject_already_is_said_once(capsys):
    print_error(HapteraError("node:n1 has no log yet", where="node:n1", do="see it"))
    print_error(HapteraError("node:n1 has no log yet", where="node:n"))
    said = "error: node:n1 has no log yet\n"
    assert capsys.readouterr().err == f"{said}  see it\n{said}  node:n\n"


def test_a_place_that_is_no_subject_stays_on_a_line_of_its_own(capsys):
    for what, where in (
        ("there is no node n9", "site.yaml:3"),
        ("cannot reach the parent: refused", "127.0.0.1"),
        ("is not a number", "the selector\n  n[x]\n    ^"),
    ):
        print_error(HapteraError(what, where=where))
        assert capsys.readouterr().err == f"error: {what}\n  {where}\n"
