"""The page on graphs: its pictures and its JSON are what the commands print."""

import io
import json
import re
import shlex
import shutil
from xml.etree import ElementTree

import msgspec
import pytest

from haptera.cli.main import OK, run
from tests.cli.drawing.examples import EXAMPLES
from tests.docs.answer_schemas import FOLDER, GRAPH
from tests.docs.problem_schema import valid_by

FILE = FOLDER / GRAPH
PAGE = (FOLDER / "graph.md").read_text(encoding="utf-8")


def blocks(title: str) -> list[str]:
    return re.findall(rf"^```{title}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def printed(command: str, capsys) -> str:
    program, *arguments = shlex.split(command)
    assert (program, run(arguments)) == ("haptera", OK)
    return capsys.readouterr().out


def texts(picture: str) -> list[str]:
    """What is written in a picture, wherever: versions of Graphviz lay it out otherwise."""
    found = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    return sorted("".join(one.itertext()) for one in found)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("command", blocks("sh picture"))
def test_a_picture_says_what_its_command_prints(command, capsys, monkeypatch, tmp_path) -> None:
    command, _, file = command.strip().partition(" > ")
    assert f"]({file})" in PAGE
    (problem,) = blocks("json problem.json")
    (tmp_path / "problem.json").write_text(problem)
    monkeypatch.chdir(tmp_path)
    shown = (FOLDER / file).read_text(encoding="utf-8")
    assert texts(shown) == texts(printed(command, capsys)), (
        f"write it anew: {command} > docs/reference/{file}"
    )


def test_the_json_is_what_its_command_prints(capsys, monkeypatch) -> None:
    (command,) = blocks("sh json")
    echoed, _, command = command.strip().partition(" | ")
    problem = shlex.split(echoed)[1]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(problem.encode())))
    (answer,) = blocks("json answer")
    assert json.loads(printed(command, capsys)) == json.loads(answer)


@pytest.mark.parametrize("name", EXAMPLES)
def test_drawings_are_of_the_published_form(name: str) -> None:
    written = json.loads(json.dumps(msgspec.to_builtins(EXAMPLES[name])))
    assert valid_by(written, FILE, "DrawingView")
    assert not valid_by(written | {"form": "loose"}, FILE, "DrawingView")
