"""`haptera check` as a person types it: nothing but files is needed."""

import json

import pytest

from haptera.cli.main import OK, REFUSED, run

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


def test_a_good_site_is_counted(typed, tmp_path):
    (tmp_path / "site.yaml").write_text(GOOD.replace("{x}", "0"))
    counted = "cluster quick: 2 nodes, 1 service, 1 policy; nothing is wrong\n"

    assert typed("site.yaml") == (OK, counted, "")
    assert json.loads(typed(".", "-o", "json")[1]) == {
        "cluster": "quick",
        "entities": {"node": 2, "policy": 1, "service": 1},
        "errors": [],
        "findings": [],
    }


def test_all_that_is_wrong_is_told_for_people_and_for_programs(typed, tmp_path):
    (tmp_path / "a.yaml").write_text("cluster: quick\nnodes: {n1: {rak: x}}\n")
    (tmp_path / "b.yaml").write_text("desired:\n  n2: {power: 'on'}\n")
    told = (
        "error: a node has no attribute 'rak'\n"
        "  a.yaml:2:19\n"
        "  did you mean rack? there are address, architecture, bmc, bmc_cipher_suite,"
        " bmc_interface, bmc_privilege, bmc_quirks,"
        " boot_from, cpus, fault_group, groups, has_agent, if_lost, jobs, mac, memory_mb,"
        " parents, pdu, platform, rack, slurm.member, slurm.name, switch\n"
        "error: no such node: n2\n"
        "  b.yaml:2:3\n"
        "  declare it under `nodes`\n"
    )

    assert typed("a.yaml", "b.yaml") == (REFUSED, "", told)
    code, output, errors = typed("a.yaml", "b.yaml", "--output", "json")
    assert (code, errors) == (REFUSED, "")
    answer = json.loads(output)
    assert answer["cluster"] is None
    assert [(one["what"], one["where"]) for one in answer["errors"]] == [
        ("a node has no attribute 'rak'", "a.yaml:2:19"),
        ("no such node: n2", "b.yaml:2:3"),
    ]


def test_a_labs_site_is_checked_as_a_lab_reads_it(typed, tmp_path):
    (tmp_path / "site.yaml").write_text(GOOD)
    refused = typed("site.yaml")[2]
    assert refused.startswith("error: unknown placeholder {x}\n  site.yaml:2:")
    assert "to check a lab's site, add --lab\n" in refused
    assert typed("site.yaml", "--lab")[0] == OK

    (tmp_path / "site.yaml").write_text(GOOD + "lab: {delay_ms: 9000}\n")
    told = (
        "error: expected `int` <= 1800\n"
        "  site.yaml:6:17\n"
        "  see docs/reference/site-file.md, The lab\n"
    )
    assert typed("site.yaml", "--lab") == (REFUSED, "", told)


def test_standard_input_stands_alone(typed):
    assert typed("-", "site.yaml") == (
        REFUSED,
        "",
        "error: - cannot be combined with files\n  -\n  name files only, or -\n",
    )


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
