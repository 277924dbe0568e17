"""Modules that go wrong, each in its own way, under one parent with an honest one."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from haptera.model.walltime import span
from tests.kills.processes import wait_for
from tests.kills.writer import Api
from tests.liars.modules import ATTEMPTS, COOL_DOWN_MS, WAYS
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(480)]

ADDRESS = f"{NETWORK}.47.1"
ROOT = Path(__file__).parents[2]
LATECOMER = "latecomer"
AT = "context: parent"
SITE = f"""\
cluster: liars
nodes:
{"".join(f"  {way.replace('_', '-')}: {{platform: {way}}}" + chr(10) for way in WAYS)}\
  {LATECOMER}: {{platform: honest}}
desired:
  {",".join(way.replace("_", "-") for way in WAYS)}: {{power: on}}
modules:
{"".join(f"  {way}: {{place: 'tests.liars.modules:{way}', {AT}}}" + chr(10) for way in WAYS)}\
"""
UP_WITHIN_S, ENDS_WITHIN_S, HONEST_WITHIN_S = 60, 240, 60

CONVERGED = ("converged", None)
GIVEN_UP = f"; given up after {ATTEMPTS} attempts, for {span(COOL_DOWN_MS)}"
STEP = {
    "raises": "RuntimeError: on fire",
    "hangs": "no answer within 1 s",
    "meddles": "RuntimeError: meddled without success",
}
LOOK = {
    "raises_looking": "RuntimeError: on fire",
    "hangs_looking": "no answer within 1 s",
    "melts": "look_power found 'melting', which is not among its outcomes",
    "melts_rudely": "answered 'melting', which is not one of its outcomes",
    "blocks": "no answer within 1 s",
}
# What ends with its process is put down to the module, but is an attempt all the same.
DEATH = {
    "exits": "status 7",
    "killed": "killed by SIGKILL",
    "rubbish": "was ended: it sent a malformed frame",
    "gigabyte": "was ended: it sent a malformed frame",
    "floods": "was ended: it sent more than was requested",
}
# Where each node stands in the end, in the words that people are told.
ENDS = {
    "honest": CONVERGED,
    "repeats": CONVERGED,
    **{way: ("stuck", f"{way}.switch_on: {text}{GIVEN_UP}") for way, text in STEP.items()},
    **{way: ("stuck", f"{way}.look_power: {text}{GIVEN_UP}") for way, text in LOOK.items()},
    **{
        way: ("stuck", f"{way}.switch_on: module {way} {text}{GIVEN_UP}")
        for way, text in DEATH.items()
    },
}
LEAKS = "leaks.switch_on: OSError: [Errno 24] Too many open files"


@dataclass
class Ended:
    """How it went: where each node stood in the end, and how often its switch was asked."""

    stood: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    log: str = ""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """One parent with all of them, until each node has come to its end."""
    home = tmp_path_factory.mktemp("liars")
    result = Ended()
    with served(home) as api:
        wait_for("the honest one converges", lambda: stand(api)["honest"] == CONVERGED, UP_WITHIN_S)
        with suppress(AssertionError):  # each is compared on its own below
            wait_for("all come to their ends", lambda: have_ended(api, result), ENDS_WITHIN_S)
        # Whatever the others do, what is wished for now comes about.
        wish = {"power": "on"}
        answer = api.ask("PATCH", f"/v1/entities/node:{LATECOMER}/desired", wish)
        assert answer is not None
        assert answer[0] == 200, answer
        wait_for("one more", lambda: stand(api)[LATECOMER] == CONVERGED, HONEST_WITHIN_S)
        assert stand(api)["honest"] == CONVERGED
    switches = home / ".haptera" / "parent" / "switches"
    for name in (*ENDS, "leaks", LATECOMER):
        file = switches / f"{name.replace('_', '-')}.commands.asked"
        result.asked[name] = len(file.read_text().splitlines()) if file.exists() else 0
    result.log = (home / "serve.out").read_text()
    return result


@pytest.mark.parametrize("way", ENDS)
def test_a_module_that_goes_wrong_leaves_its_node_in_a_state_that_says_why(
    ended: Ended, way: str
) -> None:
    assert ended.stood[way] == ENDS[way]


def test_a_module_without_descriptors_says_so_itself(ended: Ended) -> None:
    condition, why = ended.stood["leaks"]
    assert (condition, (why or "").startswith(LEAKS)) == ("stuck", True), why


def test_no_switch_is_asked_more_often_than_its_policy_allows(ended: Ended) -> None:
    most = dict.fromkeys(ended.asked, ATTEMPTS)
    most.update(dict.fromkeys((*LOOK, "honest", "repeats", LATECOMER), 1))
    assert {way: n for way, n in ended.asked.items() if n > most[way]} == {}


def test_the_parent_is_none_the_worse(ended: Ended) -> None:
    assert "Traceback" not in ended.log


def have_ended(api: Api, result: Ended) -> bool:
    stands = stand(api)
    result.stood = {way: stands[way] for way in (*ENDS, "leaks")}
    wrong = {way for way, ends in ENDS.items() if result.stood[way] != ends}
    return not wrong and result.stood["leaks"][0] == "stuck"


def stand(api: Api) -> dict[str, tuple[str, str | None]]:
    """Where each node stands, by the way of its module."""
    answer = api.ask("GET", "/v1/entities?kind=node")
    assert answer is not None, "the API does not answer"
    views: list[Any] = answer[2]["entities"]
    return {view["name"].replace("-", "_"): (view["condition"], view["why"]) for view in views}


@contextmanager
def served(home: Path) -> Iterator[Api]:
    """A parent with this directory; it must end well when it is interrupted."""
    (home / "site.yaml").write_text(SITE)
    client = home / ".haptera" / "client.json"
    command = [sys.executable, "-m", "tests.liars.parent", str(home), str(home / "site.yaml")]
    with (home / "serve.out").open("w") as out:
        process = subprocess.Popen(
            [*command, ADDRESS], stderr=out, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
    try:
        wait_for("the parent is up", lambda: client.exists() or process.poll(), UP_WITHIN_S)
        with closing(Api(client)) as api:
            wait_for("the site is applied", lambda: len(stand(api)) > len(WAYS), UP_WITHIN_S)
            yield api
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(UP_WITHIN_S) == 0
