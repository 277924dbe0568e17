"""`haptera check` as a person types it: nothing but files is needed."""

import pytest

from haptera.cli.main import REFUSED, run

GOOD = """\
cluster: quick
nodes: {"n[1-2]": {platform: labnode, address: "127.{x}.1.{n}", bmc: "127.{x}.2.{n}:1"}}
services: {web: {command: serve}}
desired: {web@n1: {run: running}}
policies: [{for: n1, attempts: 2}]
"""


@pytest.fixture
def typed(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def type_in(*words):
        code = run(["check", *words])
        return code, *capsys.readouterr()

    return type_in


NEVER = """\
cluster: quick
nodes: {n1: {platform: labnode}}
desired: {n1: {power: hung}}
"""


def test_what_can_never_be_is_wrong_in_each_form_of_the_answer(typed, tmp_path):
    (tmp_path / "site.yaml").write_text(NEVER)
    code, out, errors = typed("site.yaml")
    assert (code, errors) == (REFUSED, "")
    assert out.startswith(
        "error: node:n1: nothing leads to power=hung [no-way]\n  site.yaml:3:16\n"
    )
    assert out.endswith("\ncluster quick: 1 node; 1 error\n")
    for form in ("json", "yaml", "wide", "sarif"):
        code, out, errors = typed("site.yaml", "-o", form)
        assert (code, "no-way" in out, errors) == (REFUSED, True, "")
    code, out, errors = typed("site.yaml", "-o", "name")
    assert (code, out, "[no-way]" in errors) == (REFUSED, "node:n1\n", True)


@pytest.mark.parametrize("words", [["lint"], ["site", "check"]])
@pytest.mark.parametrize("text", [GOOD.replace("{x}", "0"), GOOD, NEVER])
def test_the_former_names_answer_as_the_new_one_and_say_it(typed, capsys, tmp_path, words, text):
    (tmp_path / "site.yaml").write_text(text)
    code, out, errors = typed("site.yaml")
    said = f"warning: haptera {' '.join(words)} is called haptera check now\n"
    assert (run([*words, "site.yaml"]), *capsys.readouterr()) == (code, out, f"{said}{errors}")
