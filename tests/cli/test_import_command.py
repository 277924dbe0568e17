"""`haptera import` as a person types it: a site on standard output, all else on standard error."""

import json
import shutil
from pathlib import Path

import pytest

from haptera.cli.main import OK, run
from tests.cli.clusters import GIVEN


@pytest.fixture
def typed(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(GIVEN / "i.json", ".")

    def type_in(*words):
        code = run(words)
        return code, *capsys.readouterr()

    return type_in


def test_programs_get_both_in_one_answer(typed):
    code, output, errors = typed("import", "ansible", "i.json", "-o", "json")

    answer = json.loads(output)
    site = typed("import", "ansible", "i.json")[1]
    assert (code, errors, answer.pop("site")) == (OK, "", site)
    assert (answer.pop("nodes"), answer.pop("groups")) == (2, 1)
    assert answer["remarks"][1] == {
        "sort": "left out",
        "what": "variable shelf",
        "nodes": "n[1-2]",
        "where": ["i.json:1:92", "i.json:1:143"],
        "do": "to make it an attribute: --attribute NAME=shelf",
    }


def test_the_site_is_taken_by_site_check(typed):
    _, output, _ = typed("import", "ansible", "i.json", "--attribute", "rack=shelf")
    Path("site.yaml").write_text(output)

    assert "rack: a" in output
    assert typed("check", "site.yaml") == (
        OK, "cluster imported: 2 nodes; nothing is wrong\n", ""
    )  # fmt: skip
