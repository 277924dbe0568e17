"""`python -m haptera.planner`: a line of JSON for each problem from elsewhere, and exit codes."""

import codecs
import io
import json
import subprocess
import sys

import pytest

from haptera.planner.__main__ import main
from haptera.planner.explain.problem_line import PROBLEM_BYTES_MAX
from haptera.planner.problem_file import problems
from tests.planner.test_problem_line import lights, line
from tests.planner.test_worked_examples import PROBLEM

CHAIN = line()
NONE = line(steps=[], observed={"power": "on", "agent": "down"})
HARD = lights(18)
MALFORMED = b"not JSON"
MET = line(desired={"power": "off"})
COMMAND = (sys.executable, "-m", "haptera.planner", "-")


def asked(capsys, tmp_path, *lines):
    path = tmp_path / "problems.jsonl"
    path.write_bytes(b"\n".join(lines))
    code = main([str(path)])
    out, errors = capsys.readouterr()
    assert errors == ""
    return code, out


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([CHAIN], 0),
        ([CHAIN, MET, CHAIN], 0),
        ([CHAIN, NONE, CHAIN], 2),
        ([HARD, NONE], 3),
        ([MALFORMED, HARD, NONE, CHAIN], 64),
    ],
)
def test_the_exit_code_is_that_of_the_worst_answer(lines, code, capsys, tmp_path):
    found, out = asked(capsys, tmp_path, *lines)
    assert (found, len(out.splitlines())) == (code, len(lines))


def test_each_line_is_answered_by_a_line_in_order_and_a_malformed_one_too(capsys, tmp_path):
    code, out = asked(capsys, tmp_path, CHAIN, MALFORMED, b"", NONE, b"  ", MET)
    answers = [json.loads(one) for one in out.splitlines()]
    assert code == 64
    assert answers[1] == {"error": {"place": "column 1", "text": "is not JSON: Expecting value"}}
    assert [one.get("verdict") for one in answers] == ["chain", None, "none", "chain"]


def test_one_problem_may_stand_on_many_lines(capsys, tmp_path):
    spread = json.dumps(json.loads(CHAIN), indent=1).encode()
    code, out = asked(capsys, tmp_path, spread)
    assert (code, json.loads(out)["cost"]) == (0, 4)

    broken = spread.replace(b'"cost": 2', b'"cost": 2,')
    code, out = asked(capsys, tmp_path, broken)
    assert (code, len(out.splitlines())) == (64, 1)


@pytest.mark.parametrize("cut", [b"{", b'{"variables":', b'{"looks": [', b'{"a": 1,'])
def test_a_first_line_that_is_cut_short_does_not_take_the_others_along(cut, capsys, tmp_path):
    code, out = asked(capsys, tmp_path, cut, CHAIN, MET)
    found = ["error" in json.loads(one) for one in out.splitlines()]
    assert (code, found) == (64, [True, False, False])


def test_a_line_that_is_too_long_is_one_malformed_problem(capsys, tmp_path):
    long = b'{"variables": "' + b"x" * 3 * PROBLEM_BYTES_MAX + b'"}'
    for lines, errors in (
        ([CHAIN, long, MET], [False, True, False]),
        ([long, long, MET], [True, True, False]),
        ([MET, long], [False, True]),
    ):
        code, out = asked(capsys, tmp_path, *lines)
        assert (code, ["error" in json.loads(one) for one in out.splitlines()]) == (64, errors)


def test_a_line_that_begins_with_too_much_white_space_is_not_passed_over(capsys, tmp_path):
    blank = b" " * 2 * PROBLEM_BYTES_MAX
    code, out = asked(capsys, tmp_path, CHAIN, blank + CHAIN, blank, MET)
    found = ["error" in json.loads(one) for one in out.splitlines()]
    assert (code, found) == (64, [False, True, False])


def test_a_byte_order_mark_is_no_part_of_the_first_problem(capsys, tmp_path):
    spread = json.dumps(json.loads(CHAIN), indent=1).encode()
    for lines in ([CHAIN, MET], [spread]):
        marked = [codecs.BOM_UTF8 + lines[0], *lines[1:]]
        assert asked(capsys, tmp_path, *marked) == asked(capsys, tmp_path, *lines)


def test_no_problem_is_held_that_is_longer_than_it_may_be():
    endless = io.BytesIO(b"{\n" + b"[1,\n" * PROBLEM_BYTES_MAX)
    assert list(map(len, problems(endless))) == [PROBLEM_BYTES_MAX + 1]
    assert endless.tell() < PROBLEM_BYTES_MAX + 10


def test_with_explain_each_answer_says_what_else_there_is(capsys, tmp_path):
    force = {"name": "force_off", "changes": {"power": ["on", "off"]}, "cost": 20}
    given = {"observed": {"power": "on", "agent": "up"}, "desired": {"power": "off"}}
    path = tmp_path / "problem.json"
    path.write_bytes(line(steps=[*PROBLEM["steps"], force], **given))
    assert main([str(path), "--explain"]) == 0
    assert json.loads(capsys.readouterr().out)["explained"]["runner_up"] == {
        "text": "without stop",
        "cost": 20,
        "parts": ["force_off"],
    }


def test_what_cannot_be_asked_is_told(capsys, tmp_path):
    path = tmp_path / "none.json"
    assert main([str(path)]) == 1
    unreadable = "cannot be read: No such file or directory (name a file of problems)"
    assert capsys.readouterr() == ("", f"error: {path}: {unreadable}\n")

    path.write_bytes(b"\n")
    assert main([str(path)]) == 64
    empty = f"error: {path} holds no problem (write one on each line)\n"
    assert capsys.readouterr() == ("", empty)


@pytest.mark.net
def test_it_needs_neither_a_parent_nor_a_client_file(tmp_path):
    done = subprocess.run(COMMAND, cwd=tmp_path, input=CHAIN, capture_output=True, check=True)
    assert (json.loads(done.stdout)["verdict"], done.stderr) == ("chain", b"")


@pytest.mark.net
def test_a_line_is_answered_before_the_next_is_read(tmp_path):
    with subprocess.Popen(
        COMMAND, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        verdicts = []
        for one in (CHAIN, NONE, CHAIN):
            process.stdin.write(one + b"\n")
            process.stdin.flush()
            verdicts.append(json.loads(process.stdout.readline())["verdict"])
        process.stdin.close()
        assert process.stdout.read() == b""
    assert (verdicts, process.returncode) == (["chain", "none", "chain"], 2)
