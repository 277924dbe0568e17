"""`haptera module lint` and `haptera check`: what is printed, in which form, and the exit codes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from haptera.cli.main import OK, REFUSED, run
from haptera.cli.output.findings.findings import print_findings
from haptera.cli.output.findings.lint_forms import Located, Location
from haptera.core.modules.catalog import own_manifests
from haptera.kinds import KINDS
from haptera.lint.lint import lint_kinds
from haptera.model.answers.finding import Finding, Level, Rule
from haptera.modules import BUNDLED, load
from tests.cli.clusters import GIVEN
from tests.docs.answer_schemas import FOLDER, LINT, VERBS
from tests.docs.problem_schema import valid_by

ROOT = Path(__file__).resolve().parents[2]
SARIF = Path(__file__).with_name("sarif.schema.json")

WARNED, WRONG, CLEAN = ((GIVEN / f"{one}.py").read_text() for one in ("warned", "wrong", "clean"))

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
        (CLEAN, ("--strict",), OK),
    ],
)
def test_the_exit_code_tells_errors_and_with_strict_warnings(
    text: str, arguments: tuple[str, ...], code: int, asked: Asked
) -> None:
    assert asked("mine.py", *arguments, mine=text)[0] == code
    assert asked("mine.py", *arguments, "-o", "json", mine=text)[0] == code
    assert asked("mine.py", *arguments, "-o", "sarif", mine=text)[0] == code


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
            "location": {"file": "mine.py", "line": 18, "column": None},
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
                "region": {"startLine": 18},
            },
        }
    ]


@pytest.mark.parametrize("text", [WARNED, WRONG, CLEAN], ids=["warned", "wrong", "clean"])
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


def test_a_module_that_cannot_even_be_declared_is_refused(asked: Asked) -> None:
    text = WRONG + 'module.serves(node.busy).goes("free", "gone")\n'
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
