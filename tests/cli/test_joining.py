"""A machine that runs already becomes a node: its agent asks for its own invitation."""

import json
import shutil
import subprocess
from contextlib import contextmanager

import pytest

from haptera.client import Access, Client, RefusedError, UnreachableError, calls, find
from haptera.client.bare import ask_bare
from haptera.model.changes import Declare
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from tests.api.serving import serving
from tests.cli.rig import client_of, command, environment, served, typed
from tests.lab.rig import WAIT_S_MAX, wait_for
from tests.network import NETWORK

PARENT, NODE = f"{NETWORK}.88.1", f"{NETWORK}.88.2"
SITE = "cluster: small\nmodules: [service]\nnodes: {n1: {}, n2: {}}\ndesired: {n1: {agent: up}}\n"


@contextmanager
def agent(home, client_file, node="n1"):
    line = ["agent", "--dir", home / "run", "--address", NODE, "--from", client_file]
    with (home / "agent.out").open("a") as out:
        process = subprocess.Popen(
            command(*line, "--node", node), env=environment(), stdout=out, stderr=out
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(WAIT_S_MAX)


def seen(home):
    _, out, _ = typed("get", "node:n1", "-o", "json", folder=home, client=client_of(home))
    view = json.loads(out)
    return view["condition"], view["observed"].get("agent", {}).get("value")


@pytest.mark.net
@pytest.mark.slow
def test_a_machine_joins_by_a_token_for_itself_alone_and_again_after_each_boot(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=PARENT):
        words = ("token", "make", "n1", "--scope", "exec", "--within", "n1", "--client-file")
        code, text, said = typed(*words, folder=tmp_path, client=client_of(tmp_path))
        assert code == 0, said
        file = tmp_path / "n1.json"
        file.write_text(text)
        file.chmod(0o600)
        for boot in (1, 2):
            with agent(tmp_path, file):
                enrolled = f"n1 enrolled: incarnation {boot}"
                wait_for(lambda said=enrolled: said in (tmp_path / "serve.out").read_text())
                wait_for(lambda: seen(tmp_path) == ("converged", "up"))
            shutil.rmtree(tmp_path / "run")  # as a boot does
        with agent(tmp_path, file, node="n2") as other:
            assert other.wait(WAIT_S_MAX) == 1
        assert "is limited to n1" in (tmp_path / "agent.out").read_text()
        with Client(find(client_of(tmp_path)).access) as client:
            deeds = [one.what for one in client.ask(calls.audit()).deeds]
    assert deeds.count("invite n1: its agent starts") == 2


@pytest.mark.net
def test_a_call_without_h11_is_answered_or_refused_in_the_same_words():
    with serving(Declare(node_id("n1"), {}, "site")) as one:
        access = Access(one.url, "exec-token")
        assert ask_bare(calls.invite("n1"), access).parent == "127.0.0.1:4271"
        with pytest.raises(RefusedError, match="n9"):
            ask_bare(calls.invite("n9"), access)
        with pytest.raises(RefusedError, match="token"):
            ask_bare(calls.invite("n1"), Access(one.url, "no-token"))
    with pytest.raises(UnreachableError, match="cannot reach the parent"):
        ask_bare(calls.invite("n1"), access)
    with pytest.raises(HapteraError, match="by a socket"):
        ask_bare(calls.invite("n1"), Access("unix:/run/api.sock"))
