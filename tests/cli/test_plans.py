"""Plans as a person types them: saved and applied, named by a digest, asked for at a terminal."""

import json
import os
import subprocess

import pytest

from haptera.cli.main import OK, REFUSED
from haptera.cli.output.plans import print_sum
from haptera.model.answers.plan import Plan, Rewrite
from tests.api.serving import WITHIN_S
from tests.cli.clusters import cluster_of
from tests.cli.rig import command
from tests.cli.test_commands import typed

pytestmark = pytest.mark.net


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    with cluster_of("twenty", monkeypatch, tmp_path) as one:
        yield one


def digest(capsys, *words):
    _, out, _ = typed(capsys, *words, "-o", "json")
    return json.loads(out)["plan"]["digest"]


def at_terminal(given, *words):
    """As typed where standard input is a terminal, with what is entered when it asks."""
    ours, theirs = os.openpty()
    try:
        with subprocess.Popen(
            command(*words), stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            os.write(ours, f"{given}\n".encode())
            out, errors = process.communicate(timeout=WITHIN_S)
    finally:
        os.close(ours)
        os.close(theirs)
    return process.returncode, out, errors


def test_without_a_terminal_what_is_wide_needs_its_digest(cluster, capsys):
    code, out, errors = typed(capsys, "apply", "site.yaml")
    assert (code, out, cluster.backend.revision()) == (REFUSED, "", 40)
    assert errors.splitlines()[0] == (
        "error: this disrupts up to 3 of 20 nodes, more than 10 %: n[1-3]"
    )
    named = digest(capsys, "plan", "site.yaml")
    code, out, _ = typed(capsys, "apply", "site.yaml", "--digest", named)
    assert (code, out) == (OK, "20 changes (20 set) written (revision 60)\n")


def test_at_a_terminal_the_plan_is_shown_and_its_digest_asked_for(cluster, capsys):
    named = digest(capsys, "plan", "site.yaml")
    code, out, errors = at_terminal("0" * 12, "apply", "site.yaml")
    assert (code, cluster.backend.revision()) == (REFUSED, 40)
    assert f"to apply it, confirm it: --digest {named}\n" in out
    assert f"error: '{'0' * 12}' is not the digest of this plan: nothing was written" in errors
    code, out, _ = at_terminal(named, "apply", "site.yaml")
    assert (code, cluster.backend.revision()) == (OK, 60)
    assert out.endswith("20 changes (20 set) written (revision 60)\n")


def test_what_is_forgotten_is_told_in_one_line_whatever_its_attributes_were(capsys):
    gone = [
        Rewrite(of, on, count, None, attributes, "site", None, None)
        for of, on, count, attributes in (
            ("node", "n[1-2]", 2, '{"rack":"1"}'),
            ("node", "n3", 1, '{"rack":"2"}'),
            ("policy site-1", None, 1, "{}"),
        )
    ]
    print_sum(Plan("5" * 12, gone, [], {}, 3, "n[1-3]", 3, {}, None))
    assert capsys.readouterr().out.splitlines()[2:] == [
        "forgets node on n[1-3] (3)",
        "forgets policy site-1",
        "disrupts up to 3 of 3 nodes: n[1-3]",
        "plan 555555555555",
    ]


def test_a_revert_of_much_is_not_done_by_saying_yes(cluster, capsys):
    code, _, errors = typed(capsys, "revert", "40", "--yes")
    assert (code, cluster.backend.revision()) == (REFUSED, 40)
    assert "the plan may disrupt too many nodes for --yes" in errors
    named = digest(capsys, "revert", "40", "--dry-run")
    assert at_terminal(named, "revert", "40")[0] == OK
    assert cluster.backend.revision() == 60
