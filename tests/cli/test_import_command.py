"""`haptera import` as a person types it: a site on standard output, all else on standard error."""

import json
import re
from pathlib import Path

import pytest

from haptera.cli.main import OK, REFUSED, USAGE, run

INVENTORY = {
    "_meta": {
        "hostvars": {
            "n1": {"ansible_host": "10.0.0.11", "ansible_password": "planted", "shelf": "a"},
            "n2": {"ansible_host": "10.0.0.12", "shelf": "a"},
        }
    },
    "web": {"hosts": ["n1", "n2"]},
}
SITE = """\
# Nothing is desired here: haptera looks at these nodes, and changes nothing.
# Secrets are not in this file; `haptera secret set NAME` keeps them.
cluster: imported

groups:
  web: "n[1-2]"

nodes:
  n[1-2]: {address: "10.0.0.{n+10}"}
"""
KEEP = "keep it by `haptera secret set NAME`; settings of a module name it {secret: NAME}"
TOLD = f"""\
secret: variable ansible_password, of n1
  i.json:1:61
  {KEEP}
left out: variable shelf, of n[1-2]
  i.json:1:92 and 1 more place
  to make it an attribute: --attribute NAME=shelf
2 nodes, 1 group; 2 remarks
"""


@pytest.fixture
def typed(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("i.json").write_text(json.dumps(INVENTORY))

    def type_in(*words):
        code = run(words)
        return code, *capsys.readouterr()

    return type_in


def test_a_site_is_written_and_what_is_not_in_it_told(typed):
    assert typed("import", "ansible", "i.json") == (OK, SITE, TOLD)
    assert typed("import", "ansible", "i.json", "--strict") == (REFUSED, SITE, TOLD)


def test_programs_get_both_in_one_answer(typed):
    code, output, errors = typed("import", "ansible", "i.json", "-o", "json")

    answer = json.loads(output)
    assert (code, errors, answer.pop("site"), answer.pop("nodes"), answer.pop("groups")) == (
        OK, "", SITE, 2, 1
    )  # fmt: skip
    assert answer["remarks"][1] == {
        "sort": "left out",
        "what": "variable shelf",
        "nodes": "n[1-2]",
        "where": ["i.json:1:92", "i.json:1:143"],
        "do": "to make it an attribute: --attribute NAME=shelf",
    }


def test_what_is_managed_is_desired(typed):
    _, output, _ = typed("import", "ansible", "i.json", "--manage", "--cluster", "quick")

    assert "Nothing is desired" not in output
    assert "cluster: quick\n" in output
    assert output.endswith("\ndesired:\n  n[1-2]: {agent: up}\n")


def test_the_site_is_taken_by_site_check(typed):
    _, output, _ = typed("import", "ansible", "i.json", "--attribute", "rack=shelf")
    Path("site.yaml").write_text(output)

    assert "rack: a" in output
    assert typed("check", "site.yaml") == (
        OK, "cluster imported: 2 nodes; nothing is wrong\n", ""
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ansible", "gone.json"), "gone.json cannot be read: No such file or directory\n"),
        (("ansible", "i.json", "--cluster", "-"), "'-' is not a name"),
        (
            ("ansible", "i.json", "--attribute", "rack"),
            "its source is missing\n  --attribute rack",
        ),
        (("ansible", "i.json", "--attribute", "rak=a"), "no attribute 'rak' can be taken"),
        (("ansible", "i.json", "--attribute", "groups=a"), "no attribute 'groups' can be taken"),
        (
            ("ansible", "i.json", "--attribute", "rack=a", "--attribute", "rack=b"),
            "rack is there twice",
        ),
        (
            ("ansible", "i.json", "--attribute", "rack=ansible_password"),
            "attributes are seen by all, and this looks like a secret",
        ),
        (("clustershell", "empty"), "no file of ClusterShell's is in this folder\n  empty"),
        (("layercake", "latin.json"), "byte 1 is not UTF-8\n  latin.json"),
        (("warewulf", "broken.conf"), "did not find expected"),
        (("warewulf", "void"), "it is not a registry of nodes\n  void"),
    ],
)
def test_what_cannot_be_done_is_told_with_what_to_do(typed, words, told):
    Path("empty").mkdir()
    Path("void").touch()
    Path("latin.json").write_bytes(b"\xe9")
    Path("broken.conf").write_text("nodes: [")
    code, output, errors = typed("import", *words)

    assert (code, output) == (REFUSED, "")
    assert re.match(r"error: .+\n  .+\n", errors)
    assert told in errors


def test_a_source_without_nodes_is_no_site(typed):
    Path("none.json").write_text('{"nodes": [], "more": 1}')

    told = "left out: more\n  none.json:1:15\nerror: no node was found in it\n"
    assert typed("import", "layercake", "none.json") == (
        REFUSED, "", f"{told}  check that it is the right file\n"
    )  # fmt: skip


def test_an_import_names_what_it_imports(typed):
    code, _, errors = typed("import", "clustershell")

    assert code == USAGE
    assert "Missing argument 'FILE...'" in errors
