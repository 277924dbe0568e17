"""Bad input as a user meets it: the real command line, the real parent, the whole output."""

import json
import signal
import subprocess
from contextlib import suppress

import pytest

from tests.cli.rig import (
    ADDRESS,
    DESIRED,
    OTHER,
    SITE,
    client_of,
    command,
    desired,
    environment,
    served,
    told,
    typed,
)
from tests.kinds.listed import DESIRABLE
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow]

PAGE = f"http://{ADDRESS}:4270"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The directory of a parent that runs for all tests of this file that name it."""
    home = tmp_path_factory.mktemp("served")
    (home / "site.yaml").write_text(SITE)
    with served(home, "--site", home / "site.yaml"):
        wait_for(lambda: desired(home) == DESIRED)
        yield home


def test_a_wrong_site_file_is_refused_whole(home, tmp_path):
    """Other ways to be wrong are in sessions/commands.txt."""
    text = SITE.replace("power", "powr")
    (tmp_path / "site.yaml").write_text(text)
    errors = told(
        "a node has no variable 'powr'",
        "site.yaml:3:28",
        f"did you mean power? there are {DESIRABLE}",
    )
    client = client_of(home)
    for name in ("apply", "plan"):
        assert typed(name, "site.yaml", folder=tmp_path, client=client) == (1, "", errors)
    from_input = errors.replace("site.yaml", "standard input")
    assert typed("apply", "-", folder=tmp_path, client=client, given=text) == (1, "", from_input)
    assert desired(home) == DESIRED


def test_what_apply_refuses_is_refused_when_it_is_planned(home, tmp_path):
    policy = "policies: [{for: 'node:n1', back_off: 10s, back_off_max: 2s}]\n"
    (tmp_path / "site.yaml").write_text(SITE + policy)
    what = (
        "nothing was written: policy:site-1: sync.hear on node:n1:"
        " the back-off must be positive, and at most its own maximum"
    )
    refusal = (1, "", told(what, None, "fix the cause, then try again"))
    client = client_of(home)
    for arguments in (("plan",), ("apply", "--dry-run"), ("apply",)):
        assert typed(*arguments, "site.yaml", folder=tmp_path, client=client) == refusal
    assert desired(home) == DESIRED


SEE = "see which there are: haptera get node"


@pytest.mark.parametrize(
    ("arguments", "errors"),
    [
        (("status", "--check", "n[2-4]"), told("no such node: n[3-4]", None, SEE)),
        (
            ("set", "nn1", "power=on"),
            told(
                "there is no node:nn1",
                None,
                f"did you mean node:n1? {SEE}, or GET /v1/entities?kind=node",
            ),
        ),
    ],
)
def test_what_is_not_there_is_told(home, tmp_path, arguments, errors):
    assert typed(*arguments, folder=tmp_path, client=client_of(home)) == (1, "", errors)


def test_a_wrong_token_is_refused(home, tmp_path):
    client = tmp_path / "client.json"
    client.write_text(json.dumps({"url": PAGE, "token": "wrong"}))
    client.chmod(0o600)
    errors = told(
        "no valid token",
        PAGE,
        "create a new token (haptera token make NAME), because tokens expire and can be revoked;"
        " or use the client file that this parent wrote last, .haptera/client.json",
    )
    site = home / "site.yaml"
    for arguments in (("status",), ("apply", site), ("watch",)):
        assert typed(*arguments, folder=tmp_path, client=client) == (1, "", errors)


def test_a_token_that_only_reads_writes_nothing(home, tmp_path):
    client = tmp_path / "client.json"
    page = json.loads(client_of(home).read_bytes())["page"]
    client.write_text(json.dumps({"url": PAGE, "token": page.partition("=")[2]}))
    client.chmod(0o600)
    assert typed("status", "n1", folder=tmp_path, client=client)[0] == 0
    assert typed("apply", home / "site.yaml", folder=tmp_path, client=client) == (
        1,
        "",
        told(
            "this needs a token of scope write, page's allows read",
            None,
            "use a token that allows write",
        ),
    )


def test_without_a_client_file_one_is_told_how_to_get_one(tmp_path):
    assert typed("status", folder=tmp_path) == (
        3,
        "",
        told(
            "no .haptera/client.json here or in a folder above",
            tmp_path,
            "start a lab with `haptera lab`, or name a file with --client or $HAPTERA_CLIENT",
        ),
    )
    assert typed("status", folder=tmp_path, client="none.json") == (
        3,
        "",
        told("no client file: No such file or directory", "none.json", "name one with --client"),
    )


def test_a_parent_that_does_not_run_is_told(tmp_path):
    client = tmp_path / "client.json"
    client.write_text(json.dumps({"url": f"http://{OTHER}:4270", "token": "any"}))
    client.chmod(0o600)
    (tmp_path / "site.yaml").write_text(SITE)
    errors = told(
        "cannot reach the parent: Connection refused",
        f"http://{OTHER}:4270",
        "check that it runs, and that the client file has its address",
    )
    for arguments in (("status",), ("apply", "site.yaml")):
        assert typed(*arguments, folder=tmp_path, client=client) == (3, "", errors)


def test_watch_says_once_that_nobody_answers_and_waits(tmp_path):
    client = tmp_path / "client.json"
    client.write_text(json.dumps({"url": f"http://{OTHER}:4270", "token": "any"}))
    client.chmod(0o600)
    with subprocess.Popen(
        command("watch"), env=environment(client), stderr=subprocess.PIPE, text=True
    ) as process:
        first = process.stderr.readline()
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)  # several tries
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert (process.returncode, (first + rest).count("error:")) == (0, 1)
    assert first == "error: cannot reach the parent: Connection refused\n"


def test_a_directory_in_use_names_who_uses_it(home):
    code, out, errors = typed("serve", "--dir", home, "--listen", OTHER, folder=home)
    assert (code, out) == (1, "")
    what, where, do = errors.splitlines()
    assert what.startswith("error: this directory is in use by process ")
    assert where == f"  {home}/.haptera/parent/state.db"
    assert do == "  stop that process, or use another directory"
