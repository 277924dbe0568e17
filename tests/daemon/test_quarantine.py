"""Two machines claim one node's token, at a parent two levels down: no parent trusts either."""

import asyncio
import json
import queue
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from haptera.model.changes import CloseIntent, OpenIntent
from haptera.model.effects import Write
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from haptera.model.events import Unwritten, Written
from haptera.model.intent import Intent
from haptera.model.parts import EnrolmentLevel
from haptera.runtime.clock import wall_s
from haptera.runtime.enrolment.enrol import Invitation, enrol
from haptera.runtime.identity.pki import new_key
from haptera.runtime.store.store import Store
from tests.cli.rig import client_of, command, environment, typed
from tests.lab.rig import WAIT_S_MAX, wait_for
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.slow]

ADDRESSES = {name: f"{NETWORK}.59.{at}" for at, name in enumerate(("root", "m1", "m2", "n1"), 1)}
SITE = """\
cluster: small
nodes:
  m1: {{address: {m1}}}
  m2: {{address: {m2}}}
  n1: {{address: {n1}, parents: "m1, m2"}}
desired: {{n1: {{agent: up}}}}
""".format(**ADDRESSES)


@contextmanager
def running(*arguments: object, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("a") as out:
        process = subprocess.Popen(command(*arguments), stderr=out, env=environment())
    try:
        yield process
    finally:
        process.kill()
        process.wait(WAIT_S_MAX)


def serving(folder: Path, name: str) -> tuple[object, ...]:
    """How a parent is started: the root by the site, the others below it."""
    home = folder / name
    home.mkdir(exist_ok=True)
    words = ("serve", "--dir", home, "--listen", ADDRESSES[name], "--hello", "0.5")
    if name == "root":
        (home / "site.yaml").write_text(SITE)
        return (*words, "--site", home / "site.yaml")
    return (*words, "--name", name, "--above", client_of(folder / "root"))


def state_of(folder: Path, name: str) -> Path:
    return folder / name / ".haptera" / "parent" / "state.db"


def names_in(folder: Path, name: str, column: str) -> list[str]:
    """What a parent's file has in a column; nothing before it is there."""
    state = state_of(folder, name)
    if not state.exists():
        return []
    table, _, field = column.partition(".")
    with closing(sqlite3.connect(f"{state.as_uri()}?mode=ro", uri=True)) as opened:
        return [one for (one,) in opened.execute(f"SELECT {field} FROM {table}")]


def sessions(folder: Path, name: str) -> list[str]:
    """The nodes that have a session at a parent."""
    return names_in(folder, name, "sessions.peer")


def minted(state: Path) -> Iterator[str]:
    """Tokens for n1, as steps make them that boot it."""
    done: queue.SimpleQueue[Written | Unwritten] = queue.SimpleQueue()
    with closing(Store.open(state, deliver=done.put, wall_s=wall_s)) as store:
        for ticket, name in enumerate(("boot", "boot again")):
            boot = Intent(name, node_id("n1"), "netboot", "offer", 0, "boot", enrols=True)
            store.submit(Write(2 * ticket, (OpenIntent(boot, EnrolmentLevel.WINDOW),)))
            assert isinstance(done.get(timeout=60), Written)
            token = store.token_for(name)
            assert token is not None
            store.submit(Write(2 * ticket + 1, (CloseIntent(name),)))
            assert isinstance(done.get(timeout=60), Written)
            yield token


def test_a_node_whose_token_two_claim_has_no_session_anywhere_and_is_frozen(tmp_path: Path) -> None:
    root = client_of(tmp_path / "root")

    def view() -> dict[str, object]:
        told: dict[str, object] = json.loads(
            typed("get", "node:n1", "-o", "json", folder=tmp_path, client=root)[1]
        )
        return told

    with ExitStack() as stack:
        stack.enter_context(running(*serving(tmp_path, "root"), log=tmp_path / "root.log"))
        wait_for(lambda: typed("get", "node:n1", folder=tmp_path, client=root)[0] == 0)
        with running(*serving(tmp_path, "m1"), log=tmp_path / "m1.log"):
            wait_for(lambda: "n1" in names_in(tmp_path, "m1", "nodes.name"))
        first, second = minted(state_of(tmp_path, "m1"))
        for name in ("m1", "m2"):
            stack.enter_context(running(*serving(tmp_path, name), log=tmp_path / f"{name}.log"))
        ca = state_of(tmp_path, "m1").with_name("ca.pem").read_bytes()

        def claim(token: str) -> None:
            """A claim of a machine that nobody has seen before."""
            invitation = Invitation((ADDRESSES["m1"], 4271), token, ca)
            asyncio.run(enrol(invitation, new_key(), hello_port=4271))

        claim(first)
        claim(second)
        wait_for(lambda: names_in(tmp_path, "m2", "sessions.incarnation") == [2])
        # Of a boot that is over, it tells nothing of this one.
        with pytest.raises(HapteraError, match="the parent refused the token"):
            claim(first)
        assert sessions(tmp_path, "m1") == ["n1"]
        assert (view()["enrolment"], view()["frozen"]) == ("window", None)

        with pytest.raises(HapteraError, match="the parent refused the token"):
            claim(second)
        for name in ("root", "m1", "m2"):
            wait_for(lambda name=name: sessions(tmp_path, name) == [])
        wait_for(lambda: view()["frozen"] is not None)
        frozen = "frozen by enrolment: two machines claimed its token"
        assert (view()["enrolment"], view()["frozen"]) == (None, frozen)
        assert typed("thaw", "n1", folder=tmp_path, client=root)[0] == 0
        assert view()["frozen"] is None
