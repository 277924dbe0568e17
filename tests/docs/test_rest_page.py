"""The commands of docs/reference/rest.md, each typed to a real parent."""

import json
import re
import shutil
import subprocess

import pytest

from tests.cli.rig import SITE, served
from tests.lab.rig import ROOT, WAIT_S_MAX

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("curl") is None, reason="the page's commands need curl"),
]

PAGE = ROOT / "docs" / "reference" / "rest.md"
DIVIDER = "-- next --"


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What each block of the page prints, by its last line."""
    home = tmp_path_factory.mktemp("rest")
    (home / "site.yaml").write_text(SITE)
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    script = "".join(f"{block}\necho; echo '{DIVIDER}'\n" for block in blocks)
    with served(home, "--site", home / "site.yaml"):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=home,
            capture_output=True,
            text=True,
            timeout=WAIT_S_MAX,
            check=True,
        )
    printed = [one.strip() for one in done.stdout.split(f"{DIVIDER}\n")][:-1]
    return {block.strip().splitlines()[-1]: out for block, out in zip(blocks, printed, strict=True)}


def of(answers, part):
    """What the block printed whose last line has this part."""
    (found,) = [out for line, out in answers.items() if part in line]
    return found


def test_the_summary_is_told_with_a_token_and_over_the_socket(answers):
    for part in ('Bearer $token" "$url/v1/summary"', "--unix-socket"):
        assert json.loads(of(answers, part))["cluster"] == "small"


def test_entities_come_as_lines(answers):
    lines = [json.loads(line) for line in of(answers, "x-ndjson").splitlines()]
    assert {"node:n1", "node:n2"} <= {one["entity"] for one in lines}


def test_many_are_patched_with_one_request(answers):
    told = json.loads(of(answers, '"node:n2", "attributes"'))
    assert [(one["entity"], one["status"]) for one in told["results"]] == [
        ("node:n1", 200),
        ("node:n2", 200),
    ]


def test_what_is_sent_twice_with_a_key_is_answered_alike(answers):
    first, again = of(answers, "done").split("}{")
    assert f"{first}}}" == f"{{{again}"
    assert json.loads(f"{first}}}")["desired"]["power"]["value"] == "off"


def test_what_another_program_read_is_told_by_a_token_that_may(answers):
    assert of(answers, "v1/readings") == '{"taken":1}'


def test_the_page_has_no_block_that_is_not_looked_at_here(answers):
    assert len(answers) == 6
