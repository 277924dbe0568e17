"""The page on the lint: each of its examples is found to be what it says, in its own words."""

import re
from pathlib import Path

import pytest

from haptera.cli.main import run
from haptera.model.answers.finding import REFUSED, RULES, Level, Rule

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/lint.md").read_text(encoding="utf-8")


def blocks(language: str) -> dict[str, str]:
    pattern = rf"^```{language} ([a-z-]+)\n(.*?)^```$"
    return dict(re.findall(pattern, PAGE, re.DOTALL | re.MULTILINE))


MODULES, SITES, SAID = blocks("python"), blocks("yaml"), blocks("text")
PREAMBLE = MODULES.pop("preamble")


@pytest.mark.parametrize("rule", [*MODULES, *SITES])
def test_an_example_is_found_as_the_page_says(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if rule in SITES:
        (tmp_path / "site.yaml").write_text(SITES[rule])
        asked = ["check", "site.yaml"]
    else:
        (tmp_path / "mine.py").write_text(f"{PREAMBLE}\n{MODULES[rule]}")
        asked = ["module", "lint", "mine.py", "mine.py:theirs"]
    monkeypatch.chdir(tmp_path)
    about = RULES[Rule(rule)]

    code = run([*asked, *(["--notes"] if about.level is Level.NOTE else [])])

    assert (capsys.readouterr().out, code) == (SAID[rule], int(about.level is Level.ERROR))
    assert f"[{rule}]" in SAID[rule]


def test_the_table_has_each_rule_as_the_code_has_it() -> None:
    row = r"^\| (?:\[([a-z-]+)\]\(#\1\)|([a-z-]+)) \| ((?:error|warning|note) .*) \|$"
    rows = re.findall(row, PAGE, re.MULTILINE)
    told = {linked or plain: rest for linked, plain, rest in rows}
    refused = {rule: "yes" if rule in REFUSED else "" for rule in Rule}
    assert told == {
        rule: f"{about.level} | {refused[rule]} | {about.text}" for rule, about in RULES.items()
    }
    assert {*MODULES, *SITES} == {linked for linked, _, _ in rows if linked}
