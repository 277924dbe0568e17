"""Errors for programs: a code each, on standard error, in the form that the answer would have."""

import asyncio
import contextlib
import http.client
import json
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from starlette.requests import Request

from haptera.api.requests.body import read_bytes
from haptera.api.requests.problems import on_bug
from haptera.cli.extras import lacking
from haptera.cli.main import REFUSED, UNREACHABLE, run
from haptera.model.changes import Author, Cause
from haptera.model.effects import Reply
from haptera.model.errors import Code, HapteraError
from haptera.rest.error_codes import CODES
from haptera.runtime.identity.lock import take
from haptera.runtime.store.optimistic_write import WriteError, write
from tests.api.serving import serving
from tests.cli.playing import FOLDER

TESTS = Path(__file__).resolve().parents[1]
NOBODY = {"url": "http://127.0.0.1:9", "token": "any"}


class Contended:
    """A store to which somebody else always writes first."""

    def revision(self) -> int:
        return 1

    async def propose(self, *_: object) -> Reply:
        return Reply(1, None, "stale", Cause.STALE)


def answered(capsys, *words: str) -> tuple[object, str, str]:
    code = run(words)
    out, errors = capsys.readouterr()
    return code, out, errors


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch) -> None:
    """Nothing of a cluster is here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HAPTERA_CLIENT", raising=False)


def test_without_a_client_file_a_program_reads_the_code(capsys, tmp_path) -> None:
    code, out, errors = answered(capsys, "status", "-o", "json")
    assert (code, out) == (UNREACHABLE, "")
    assert json.loads(errors) == {
        "errors": [
            {
                "code": Code.NO_CLIENT_FILE,
                "what": "no .haptera/client.json here or in a folder above",
                "where": str(tmp_path),
                "do": "start a lab with `haptera lab`, or name a file with --client or"
                " $HAPTERA_CLIENT",
            }
        ]
    }


def test_a_parent_that_does_not_answer_has_a_code_as_yaml_too(capsys, tmp_path) -> None:
    (tmp_path / "client.json").write_text(json.dumps(NOBODY))
    code, _, errors = answered(capsys, "--client", "client.json", "get", "node", "-o", "yaml")
    assert (code, codes(yaml.safe_load(errors))) == (UNREACHABLE, [Code.UNREACHABLE])


def test_a_file_that_is_not_there_has_a_code(capsys) -> None:
    code, _, errors = answered(capsys, "import", "ansible", "none", "-o", "json")
    assert (code, codes(json.loads(errors))) == (REFUSED, [Code.FILE_UNREADABLE])


def test_a_package_that_is_lacking_has_a_code() -> None:
    assert lacking(ModuleNotFoundError(name="yaml")).code == Code.NOT_INSTALLED
    refused = lacking(ModuleNotFoundError(name="haptera.cli.commands.site"))
    assert (refused.code, refused.do) == (
        Code.NOT_INSTALLED,
        "run it where haptera is installed whole",
    )


def test_a_write_that_others_always_overtake_is_given_up() -> None:
    async def make() -> tuple[str, ...]:
        return ("a change",)

    with pytest.raises(WriteError) as refused:
        asyncio.run(write(Contended(), make, Author("eve", "")))
    assert refused.value.code == Code.BUSY


def test_a_body_that_comes_too_slowly_is_refused() -> None:
    async def late() -> Mapping[str, object]:
        raise TimeoutError

    with pytest.raises(HapteraError) as refused:
        asyncio.run(read_bytes(Request({"type": "http", "headers": []}, late), 1))
    assert refused.value.code == Code.BODY_TOO_SLOW


def test_a_fault_of_ours_is_told_without_its_traceback() -> None:
    error = ZeroDivisionError("division by zero")
    answer = asyncio.run(on_bug(Request({"type": "http"}), error))
    problem = json.loads(bytes(answer.body))
    assert (answer.status_code, problem["code"]) == (500, Code.INTERNAL)
    assert "zero" not in str(problem)


@pytest.mark.net
def test_no_thread_is_begun_to_tell_of_an_error() -> None:
    with serving() as one:
        asked = http.client.HTTPConnection(one.host, one.port, timeout=60)
        with contextlib.closing(asked):
            asked.request("GET", "/v1/nowhere")
            assert asked.getresponse().status in (401, 404)
        names = [thread.name for thread in threading.enumerate()]

    assert not any("AnyIO" in name for name in names), names


HOLDS = "import sys, pathlib, haptera.runtime.identity.lock as lock\n"
HOLDS += "held = lock.take(pathlib.Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"


@pytest.mark.net
def test_what_another_process_uses_has_a_code(tmp_path) -> None:
    path = tmp_path / "state.db"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(HapteraError, match=f"in use by process {holder.pid}") as told:
            take(path)
        holder.communicate()
    assert told.value.code is Code.IN_USE


def test_each_code_has_a_meaning_and_a_test_that_produces_it() -> None:
    told = "".join(one.read_text(encoding="utf-8") for one in TESTS.rglob("test_*.py"))
    tested = set(re.findall(r"\bCode\.([A-Z_]+)\b", told))
    answered = "".join(one.read_text(encoding="utf-8") for one in FOLDER.glob("*.txt"))
    tested |= {one.name for one in Code if f'"code": "{one}"' in answered}
    assert {one.name for one in Code} - tested == set()
    assert set(CODES) == set(Code)


def codes(told: Mapping[str, list[dict[str, str]]]) -> list[str]:
    return [one["code"] for one in told["errors"]]
