"""`haptera graph`: which class it draws, from where, in which form, and what it refuses."""

import io
import json
import shutil
from xml.etree import ElementTree

import msgspec
import pytest

from haptera.cli.main import OK, REFUSED, UNREACHABLE, run
from haptera.cli.output.drawing.dot import dot
from haptera.cli.output.drawing.mermaid import mermaid
from haptera.model.answers.graph import DrawingView
from haptera.model.changes import Declare
from haptera.model.entity import node_id
from tests.api.serving import serving
from tests.cli.drawing.examples import EXAMPLES, OFF
from tests.cli.rig import OTHER, SITE, client_of, served, told, typed
from tests.cli.test_commands import point_at
from tests.planner.test_worked_examples import PROBLEM

N1 = node_id("n1")
EMPTY = "no part of this class looks at anything or changes it"
WRITERS = {"dot": dot, "mermaid": mermaid}


def asked(capsys, *arguments):
    code = run(["graph", *arguments])
    out, errors = capsys.readouterr()
    return code, out, errors


def drawn(capsys, *arguments):
    code, out, errors = asked(capsys, *arguments, "-o", "json")
    assert (code, errors) == (OK, "")
    return msgspec.json.decode(out, type=DrawingView)


def variables(drawing):
    return [name for graph in drawing.graphs for name in graph.variables]


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(PROBLEM | OFF))
    return str(path)


@pytest.mark.parametrize(
    ("kind", "names", "states"),
    [
        ("service", ["run", "applied"], 9),
        ("module", ["run", "applied"], 6),
    ],
)
def test_a_kind_is_drawn_as_the_bundled_modules_serve_it(kind, names, states, capsys):
    drawing = drawn(capsys, kind)
    assert (drawing.title, drawing.form, variables(drawing)) == (kind, "whole", names)
    assert [len(graph.states) for graph in drawing.graphs] == [states]
    assert drawing.course is None


def test_a_class_is_the_only_one_that_parts_ask_for_unless_another_is_named(capsys):
    several = asked(capsys, "node")
    assert several[2].endswith(
        "name one, as platform=ipmi; there are ipmi, labnode, libvirt, qemu, redfish\n"
    )
    only = drawn(capsys, "node", "--class", "platform=labnode")
    assert only.attributes == {"platform": "labnode", "boot_from": None, "slurm.member": None}
    assert only == drawn(capsys, "node", "--class", "platform=labnode,rack=r1")

    code, out, errors = asked(capsys, "node", "--class", "platform=labnod", "-o", "json")
    known = {"platform": "labnod", "boot_from": None, "slurm.member": None}
    assert (code, json.loads(out)["attributes"]) == (OK, known)
    assert errors == (
        "warning: no part requires platform=labnod: did you mean labnode? "
        "there are ipmi, labnode, libvirt, qemu, redfish\n"
    )
    assert json.loads(out)["graphs"][0]["states"] == [{}]


@pytest.mark.parametrize("form", WRITERS)
def test_a_problem_is_drawn_in_each_form(form, problem, capsys):
    drawing = drawn(capsys, "--problem", problem)
    assert drawing == EXAMPLES["chain"]
    assert asked(capsys, "--problem", problem, "-o", form) == (OK, WRITERS[form](drawing), "")


def test_without_a_form_it_is_dot(capsys):
    code, out, _ = asked(capsys, "node", "--class", "platform=labnode")
    assert (code, out.splitlines()[0]) == (
        OK,
        'digraph "node, platform=labnode, boot_from=-, slurm.member=-" {',
    )


def test_a_problem_comes_from_standard_input(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"variables": {}}')))
    code, out, _ = asked(capsys, "--problem", "-", "-o", "mermaid")
    assert (code, out.splitlines()[:3]) == (
        OK,
        ["flowchart TD", "  %% problem", f"  %% {EMPTY}"],
    )


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_a_picture_is_made_by_graphviz(problem, capsys):
    code, out, errors = asked(capsys, "--problem", problem, "-o", "svg")
    assert (code, errors) == (OK, "")
    texts = ElementTree.fromstring(out).iter("{http://www.w3.org/2000/svg}text")
    assert {"1. switch_on · 2", "unless agent=up?"} <= {"".join(one.itertext()) for one in texts}


def test_without_graphviz_a_picture_is_refused_with_what_there_is_instead(
    problem, capsys, monkeypatch
):
    monkeypatch.setenv("PATH", "/nowhere")
    assert asked(capsys, "--problem", problem, "-o", "svg") == (
        REFUSED,
        "",
        told(
            "there is no Graphviz here to make a picture",
            "the command dot",
            "install it (apt install graphviz), or write the graph as text: -o mermaid, -o dot",
        ),
    )


@pytest.mark.net
def test_an_entity_is_drawn_as_the_parent_sees_it(capsys, monkeypatch, tmp_path):
    with serving(Declare(N1, {}, "site")) as one:
        point_at(one.url, "read-token", monkeypatch, tmp_path)
        one.backend.graphs[N1] = EXAMPLES["chain"]
        assert drawn(capsys, "--entity", "node:n1") == EXAMPLES["chain"]
        assert drawn(capsys, "node", "--entity", "node:n1") == EXAMPLES["chain"]
        assert asked(capsys, "--entity", "node:n9") == (
            REFUSED,
            "",
            told("there is no node:n9", None, "see which there are: haptera get node, or GET"
                 " /v1/entities?kind=node"),
        )  # fmt: skip


@pytest.mark.net
@pytest.mark.slow
def test_a_parent_draws_an_entity_with_what_it_wants_and_knows(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=OTHER):
        code, out, errors = typed(
            *("graph", "--entity", "node:n1", "-o", "json"),
            folder=tmp_path,
            client=client_of(tmp_path),
        )
    assert (code, errors) == (OK, "")
    drawing = json.loads(out)
    assert (drawing["title"], drawing["course"]["goal"]) == ("node:n1", {"power": "on"})
    assert drawing["course"]["reason"] == "nothing leads to power=on"


def test_an_entity_cannot_be_drawn_without_a_client_file(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HAPTERA_CLIENT", raising=False)
    assert asked(capsys, "--entity", "n1")[:2] == (UNREACHABLE, "")


def test_what_has_too_many_edges_is_refused(capsys, tmp_path):
    path = tmp_path / "problem.json"
    values = [str(number) for number in range(1_000)]
    steps = [{"name": f"to {one}", "changes": {"v": ["*", one]}} for one in values[:2]]
    path.write_text(json.dumps({"variables": {"v": ["unknown", *values]}, "steps": steps}))
    assert asked(capsys, "--problem", str(path)) == (
        REFUSED,
        "",
        told(
            "more than 1024 edges cannot be drawn", "v", "draw a class with fewer parts or values"
        ),
    )
