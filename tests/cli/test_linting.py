"""`haptera module lint` and `haptera check`: what is printed, in which form, and the exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from haptera.cli.main import OK, REFUSED, USAGE, run
from haptera.cli.output.findings.findings import print_findings
from haptera.cli.output.findings.lint_forms import Located, Location
from haptera.core.modules.catalog import own_manifests
from haptera.kinds import KINDS
from haptera.lint.lint import lint_kinds
from haptera.model.answers.finding import Finding, Level, Rule
from haptera.modules import BUNDLED, load
from tests.docs.answer_schemas import FOLDER, LINT, VERBS
from tests.docs.problem_schema import valid_by

ROOT = Path(__file__).resolve().parents[2]
SARIF = Path(__file__).with_name("sarif.schema.json")

HEAD = """
from haptera.kinds import node
from haptera.kinds.node import Agent, Busy, Power
from haptera.sdk import Module, Target

module = Module("mine", connect=Target)
"""
WARNED = (
    HEAD
    + """
@module.serves(node.busy).look(outcomes=(Busy.FREE, Busy.BUSY), requires={node.agent: Agent.UP})
async def look(target: Target) -> Busy: ...

@module.serves(node.busy).step((Busy.FREE, Busy.BUSY), Busy.FREE, within_s=5)
async def drain(target: Target) -> None: ...

@module.serves(node.busy).step("*", Busy.BUSY, within_s=5)
async def fill(target: Target) -> None: ...
"""
)
WRONG = (
    HEAD
    + """
@module.serves(node.busy).step((Busy.FREE, Busy.BUSY), Busy.FREE, within_s=5)
async def drain(target: Target) -> None: ...
"""
)

Asked = Callable[..., tuple[int, str]]


@pytest.fixture
def asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Asked:
    def ask(*arguments: str, **files: str) -> tuple[int, str]:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        code = run(["module", "lint", *arguments])
        out, errors = capsys.readouterr()
        return code, out or errors

    return ask


def test_the_projects_own_modules_have_neither_errors_nor_warnings() -> None:
    manifests = [*own_manifests(KINDS), *(load(name).manifest() for name in BUNDLED)]
    told = [(one.level, one.rule, one.place, one.text) for one in lint_kinds(KINDS, manifests)]
    # No bundled module can tell a hung node from one that is off; modules of real BMCs may.
    hung = "power=hung never occurs"
    # Only a machine that is off can be offered what to boot, and not each class has power.
    closed = "once netboot is closed, no part leads to another value of it"
    # Grants that have ended never hold again: that is what they are for.
    spent = "once state is spent, no part leads to another value of it"
    assert told == [
        (Level.NOTE, Rule.ONE_WAY, "lease.state", spent),
        (Level.NOTE, Rule.ONE_WAY, "node.netboot", closed),
        (Level.NOTE, Rule.UNREACHABLE_VALUE, "node.power", hung),
    ]


@pytest.mark.parametrize("example", ["first_module/outlet.py"])
def test_the_examples_have_neither_errors_nor_warnings(example: str, asked: Asked) -> None:
    code, out = asked("--strict", str(ROOT / "examples" / example))
    assert (code, out) == (OK, "1 note (--notes shows notes)\n")


@pytest.mark.parametrize(
    ("text", "arguments", "code"),
    [
        (WARNED, (), OK),
        (WARNED, ("--strict",), REFUSED),
        (WRONG, (), REFUSED),
        (HEAD, ("--strict",), OK),
    ],
)
def test_the_exit_code_tells_errors_and_with_strict_warnings(
    text: str, arguments: tuple[str, ...], code: int, asked: Asked
) -> None:
    assert asked("mine.py", *arguments, mine=text)[0] == code
    assert asked("mine.py", *arguments, "-o", "json", mine=text)[0] == code
    assert asked("mine.py", *arguments, "-o", "sarif", mine=text)[0] == code


def test_a_finding_is_told_with_its_place_an_example_and_what_to_do(asked: Asked) -> None:
    assert asked("mine.py", mine=WARNED) == (
        OK,
        "warning: mine.fill: its result busy=busy may be forgotten at once: mine.look"
        " requires agent=up [may-be-lost]\n"
        "  mine.py:14\n"
        "  for example, with nothing known: mine.fill leads to busy=busy?\n"
        "  do: make it require agent=up, or declare busy as only expected\n"
        "1 warning\n",
    )


def test_nothing_wrong_is_said_so(asked: Asked) -> None:
    assert asked("mine.py", mine=HEAD) == (OK, "nothing is wrong\n")


def test_json_is_of_the_published_form(asked: Asked) -> None:
    _, out = asked("mine.py", "-o", "json", mine=WARNED)
    told = json.loads(out)
    assert valid_by(told, FOLDER / LINT, "LintForm")
    assert told["findings"] == [
        {
            "rule": "may-be-lost",
            "level": "warning",
            "kind": "node",
            "place": "mine.fill",
            "part": "mine.fill",
            "variable": None,
            "location": {"file": "mine.py", "line": 14, "column": None},
            "text": "its result busy=busy may be forgotten at once: mine.look requires agent=up",
            "examples": [
                {
                    "attributes": {},
                    "known": {},
                    "remembered": {},
                    "part": "mine.fill",
                    "known_after": {},
                    "remembered_after": {"busy": "busy"},
                }
            ],
            "fix": "make it require agent=up, or declare busy as only expected",
        }
    ]


def test_sarif_names_the_rule_the_place_and_the_line(asked: Asked) -> None:
    _, out = asked("mine.py", "-o", "sarif", mine=WARNED)
    (run_,) = json.loads(out)["runs"]
    (result,) = run_["results"]
    assert run_["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert (result["ruleId"], result["level"]) == ("may-be-lost", "warning")
    assert result["message"]["text"].startswith("its result busy=busy may be forgotten")
    assert result["locations"] == [
        {
            "logicalLocations": [{"fullyQualifiedName": "mine.fill"}],
            "physicalLocation": {
                "artifactLocation": {"uri": "mine.py"},
                "region": {"startLine": 14},
            },
        }
    ]


@pytest.mark.parametrize("text", [WARNED, WRONG, HEAD], ids=["warned", "wrong", "clean"])
def test_sarif_is_sarif(text: str, asked: Asked) -> None:
    _, out = asked("mine.py", "jobs", "-o", "sarif", mine=text)
    assert valid_by(json.loads(out), SARIF, "log")


def test_sarif_tells_a_file_elsewhere_by_its_whole_place_and_one_with_a_space_by_an_escape(
    capsys: pytest.CaptureFixture[str],
) -> None:
    finding = Finding(Rule.NO_LOOK, "node.busy", "none", "node")
    found = [Located(finding, Location(file, 3, 5)) for file in ("/no/such file.py", "a b.py")]
    assert print_findings(found, "sarif", notes=False, strict=False)
    results: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    places = [one["locations"][0]["physicalLocation"] for one in results]
    assert [one["artifactLocation"]["uri"] for one in places] == [
        "file:///no/such%20file.py",
        "a%20b.py",
    ]
    assert [one["region"] for one in places] == [{"startLine": 3, "startColumn": 5}] * 2
    assert results[0]["partialFingerprints"] == results[1]["partialFingerprints"]


def test_several_modules_are_taken_together(asked: Asked) -> None:
    """The look of the one makes the steps of the other such that what came of them is read."""
    assert asked("mine.py", mine=WRONG)[1].startswith(
        "error: node.busy: mine.drain would never be corrected"
    )
    code, out = asked("mine.py", "jobs", mine=WRONG)
    assert (code, out) == (OK, "1 note (--notes shows notes)\n")


def test_what_a_module_does_to_hapteras_own_parts_is_told(asked: Asked) -> None:
    """That an agent is heard requires its power on, which this look can never find."""
    text = (
        HEAD
        + """
@module.serves(node.power).look(outcomes=(Power.OFF,))
async def look(target: Target) -> Power: ...
"""
    )
    code, out = asked("mine.py", mine=text)
    assert code == OK
    assert out.startswith("warning: sync.hear: it can never run: it requires power=on, and no")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nonsense", "'nonsense' cannot be imported: No module named 'nonsense'; name image,"),
        ("nonsense.py", "there is no file nonsense.py"),
        (
            ".",
            "'.' names no module: name image, ipmi, jobs, labnode, libvirt, local,",
        ),
        ("mine.py:none", "mine.py has no Module called 'none'"),
        ("mine:Target", "mine has no Module called 'Target'"),
    ],
)
def test_what_is_no_module_is_wrong_usage(name: str, told: str, asked: Asked) -> None:
    code, out = asked(name, mine=HEAD)
    assert code == USAGE
    assert told in out


READS = """\
from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module


class Strip:
    def __init__(self, target):
        self.pause_s = target.settings["pause_s"]


module = Module("strip", connect=Strip, SETTINGS)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF, Power.ON))
async def look(strip):
    return Power.ON
"""


def test_a_module_that_reads_settings_is_told_to_declare_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reads.py").write_text(READS.replace("SETTINGS", ""))
    declaring = READS.replace("SETTINGS", "settings=Settings").replace(
        "class Strip:", "@dataclass\nclass Settings:\n    pause_s: float\n\n\nclass Strip:"
    )
    (tmp_path / "declares.py").write_text(f"from dataclasses import dataclass\n{declaring}")
    monkeypatch.chdir(tmp_path)

    assert run(["module", "lint", "reads.py"]) == OK
    assert capsys.readouterr().out == (
        "warning: module:strip: strip reads settings and does not declare which it takes;"
        " from version 2 of the frames on that is refused [undeclared-settings]\n"
        "  reads.py:7\n"
        "  do: declare them: Module(settings=…), or `settings` in the manifest\n"
        "1 warning, 1 note (--notes shows notes)\n"
    )
    assert run(["module", "lint", "declares.py"]) == OK
    assert capsys.readouterr().out == "1 note (--notes shows notes)\n"


def test_a_module_may_be_named_as_python_does(asked: Asked) -> None:
    assert asked("named_so:module", named_so=WRONG)[0] == REFUSED
    assert asked("named_so", named_so=WRONG)[0] == REFUSED


def test_a_file_that_is_no_python_is_told_by_its_line(asked: Asked) -> None:
    code, out = asked("mine.py", mine="x = 1\ndef look(:\n")
    assert (code, out.splitlines()[0]) == (REFUSED, "error: not valid Python: invalid syntax")
    assert out.splitlines()[1].endswith("mine.py:2")


def test_a_module_that_cannot_even_be_declared_is_refused(asked: Asked) -> None:
    text = HEAD + 'module.serves(node.busy).goes("free", "gone")\n'
    code, out = asked("mine.py", mine=text)
    assert code == REFUSED
    assert out.startswith("error: node.busy is never 'gone'")


SITE = """cluster: c
nodes:
  n[1-2]: {platform: labnode}
desired:
  n[1-2]: {busy: free}
"""


def site_asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run(["check", *arguments])
    out, errors = capsys.readouterr()
    return code, out or errors


def test_a_site_is_linted_by_the_line_and_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site.yaml").write_text(SITE)
    monkeypatch.chdir(tmp_path)
    assert site_asked(capsys, "site.yaml") == (
        OK,
        "warning: node:n[1-2]: if busy is busy, no part leads to free [no-way-from]\n"
        "  site.yaml:5:12\n"
        "  for example, with agent=up busy=busy power=on (platform=labnode)\n"
        "  do: add a step from busy to free\n"
        "cluster c: 2 nodes; 1 warning\n",
    )
    assert site_asked(capsys, "--strict", ".")[0] == REFUSED


def test_findings_of_a_site_are_json_and_sarif_of_the_same_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site.yaml").write_text(SITE)
    monkeypatch.chdir(tmp_path)
    told = json.loads(site_asked(capsys, "site.yaml", "-o", "json")[1])
    assert valid_by(told, FOLDER / VERBS, "check")
    (finding,) = told["findings"]
    assert finding["location"] == {"file": "site.yaml", "line": 5, "column": 12}
    assert (finding["place"], finding["variable"]) == ("node:n[1-2]", "busy")
    told = json.loads(site_asked(capsys, "site.yaml", "-o", "sarif")[1])
    assert valid_by(told, SARIF, "log")
    place = told["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 5, "startColumn": 12}


def test_a_site_that_cannot_be_read_is_told_as_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site.yaml").write_text(SITE.replace("busy", "bussy"))
    monkeypatch.chdir(tmp_path)
    code, errors = site_asked(capsys, "site.yaml")
    assert code == REFUSED
    assert "site.yaml:5:1" in errors
    assert site_asked(capsys, "no.yaml")[0] == REFUSED
    assert site_asked(capsys)[0] == USAGE


def test_what_only_a_lab_knows_is_known_with_lab(capsys: pytest.CaptureFixture[str]) -> None:
    site = str(ROOT / "examples/quickstart/site.yaml")
    code, out = site_asked(capsys, "--lab", "--strict", site)
    assert (code, out.endswith("; nothing is wrong\n")) == (OK, True)
    assert site_asked(capsys, site)[0] == REFUSED


@pytest.mark.net
def test_modules_of_a_sites_own_are_asked_what_they_declare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outlet = (ROOT / "examples/first_module/outlet.py").read_text()
    (tmp_path / "outlet.py").write_text(outlet)
    (tmp_path / "site.yaml").write_text("""cluster: c
modules:
  outlet: {place: "outlet:module", context: parent}
nodes:
  n1: {platform: outlet, bmc: "127.0.0.1:1"}
desired:
  n1: {power: on}
""")
    monkeypatch.chdir(tmp_path)
    told = "cluster c: 1 node; 1 note (--notes shows notes)\n"
    assert site_asked(capsys, "site.yaml", "--strict") == (OK, told)
    (tmp_path / "outlet.py").write_text(outlet.partition("@power.step(Power.OFF")[0])
    code, out = site_asked(capsys, "site.yaml", "--strict")
    assert code == REFUSED
    assert out.startswith("warning: node:n1: if power is off, no part leads to on")
    (tmp_path / "outlet.py").write_text("import no_such_thing")
    code, out = site_asked(capsys, "site.yaml")
    assert code == REFUSED
    assert "module outlet cannot be run" in out
    assert str(tmp_path) not in out
