"""Any value in any field, and then both sides killed: nothing dies, and nothing dies again."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from haptera.kinds import KINDS
from haptera.model.errors import HapteraError
from haptera.modules import BUNDLED, load
from haptera.rest.endpoints import ENDPOINTS
from haptera.rest.schemas import SiteFile
from haptera.site.lint.schema import schema
from haptera.site.model.site import KEYS, parse_site
from tests.attacks.any_value import (
    NUMBERS,
    RIGHT,
    SHAPES,
    WHOLE,
    Values,
    lacking,
    patches,
    placed,
    places,
    requests,
)
from tests.daemon.fake_slurm import a_slurm
from tests.kills.processes import Process, kill, wait_for
from tests.kills.rig import Lab

SEED = 37
EACH = 6
WITHIN_S = 120
NODES = ("n1", "n2")
CONSTANTS = {"x": "9", "python": "python3"}
SITE: dict[str, Any] = {
    "cluster": "any",
    "modules": {name: {} for name in ("jobs", "labnode", "local", "replica", "service")},
    "controllers": {"roll": {}},
    "nodes": {
        "n[1-2]": {
            "platform": "labnode",
            "cpus": "2",
            "memory_mb": "1024",
            "address": "127.{x}.1.{n}",
            "bmc": "127.{x}.2.{n}:4280",
        }
    },
    "services": {"web": {"command": "sleep 1000"}},
    "desired": {
        "n[1-2]": {"power": "on", "agent": "up"},
        "web@n[1-2]": {"run": "running"},
        "group:twin": {"command": "sleep 1000", "replicas": 2},
        "backend:near": {"engine": "slurm"},
    },
    "policies": [{"for": "n2", "attempts": 1000}],
}
# What these say is meant to end what runs here, or to begin another cluster.
MEANT = ("cluster", "modules", "lab", "include", "kinds", "controllers")
# One of each kind that a person writes; what is not there yet begins with its first value.
THERE = {
    "node": "node:n2",
    "service": "service:web@n2",
    "group": "group:twin",
    "pool": "pool:some",
    "instance": "instance:some-1",
    "backend": "backend:far",
    "roll": "roll:new",
    "image": "image:debian",
    "health": "health:n2",
    "health-rule": "health-rule:warm",
    "health-score": "health-score:warm",
    "power-cap": "power-cap:hall",
}
# Of these nothing is written by hand (replicas, leases), nothing without root (systems), or only by
# routes of their own (freezes) and in site files (policies, budgets, modules).
OTHERS = {"system", "replica", "lease", "freeze", "module", "policy", "budget"}


class Watched:
    """The lab and who its daemons are: they are to stay the same."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.api = lab.api()
        self.daemons = self.found()

    def close(self) -> None:
        self.api.close()

    def found(self) -> list[Process]:
        agents = [self.lab.agent(node) for node in NODES]
        return [one._replace(state="", comm="") for one in (self.lab.parent(), *agents)]

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = self.api.ask(method, path, body)
        assert answer is not None, (method, path, body, self.said())
        return answer[0], answer[2]

    def works(self) -> None:
        """A job runs on a node, its agent is heard, and nobody has died meanwhile."""
        spec = {"command": ["true"], "size": {"cpus": 1, "memory_mb": 64}}
        status, made = self.ask("POST", "/v1/jobs", {"spec": spec, "priority": 1_000_000})
        assert status == 201, made
        path = f"/v1/jobs/{made['first']}"
        wait_for("a job runs", lambda: self._is_complete(path), WITHIN_S)
        assert self.found() == self.daemons, self.said()
        wait_for("a node is heard", lambda: self._is_heard("n1"), WITHIN_S)

    def site(self, said: Any) -> Any:
        constants = json.loads((self.lab.root / "client.json").read_text())["constants"]
        return {"files": [{"name": "site.yaml", "text": json.dumps(said)}], "constants": constants}

    def undo(self, attributes: dict[str, str]) -> None:
        """Have the other node be as it was: then it is heard, too."""
        there = self.ask("GET", "/v1/entities/node:n2")[1]["attributes"]
        body = {name: attributes.get(name) for name in there}
        assert self.ask("PATCH", "/v1/entities/node:n2/attributes?take=1", body)[0] == 200
        wait_for("the other node is heard", lambda: self._is_heard("n2"), WITHIN_S)

    def kill(self) -> None:
        for one in self.daemons:
            kill(one)
        wait_for("the API answers", lambda: self.api.ask("GET", "/v1/health"), WITHIN_S)
        self.daemons = self.found()

    def said(self) -> str:
        return self.lab.output.read_text()[-3_000:]

    def _is_complete(self, path: str) -> bool:
        job = self.ask("GET", path)[1]
        assert job["state"] not in ("failed", "cancelled"), job
        return bool(job["state"] == "complete")

    def _is_heard(self, node: str) -> bool:
        observed = self.ask("GET", f"/v1/entities/node:{node}")[1]["observed"]
        return "agent" in observed and bool(observed["agent"]["known"])


def sites(each: int) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The site with any value at one place, for each place where one may say something."""
    values, whole = Values(SEED), schema()
    for at in places(whole, whole):
        for value in (*SHAPES[:-1], *(values.value() for _ in range(each))):
            yield at, placed(SITE, at, value)


def is_read(site: Any) -> bool:
    """True if it is a site; what is none is refused, and nothing else happens."""
    try:
        parse_site([SiteFile("site.yaml", json.dumps(site))], CONSTANTS)
    except HapteraError:
        return False
    return True


def test_each_kind_is_tried_or_said_not_to_be() -> None:
    assert THERE.keys() | OTHERS == KINDS.keys()
    assert THERE.keys() & OTHERS == set()


def test_each_field_of_each_body_is_tried_in_one_that_is_right() -> None:
    assert {one for one in ENDPOINTS if one.takes is not None} == RIGHT.keys()
    for one, rights in RIGHT.items():
        at = f"{one.method} {one.path} "
        assert [*lacking(inspect.type_info(one.takes), rights, at)] == []
        for right in rights:
            msgspec.json.decode(json.dumps(right), type=one.takes)


@pytest.mark.slow
def test_what_is_no_site_is_refused_whatever_it_says_where() -> None:
    whole = schema()
    tried = [at for at, site in sites(EACH) if is_read(site)]
    assert {at[0] for at in places(whole, whole)} == {*KEYS, "include"}
    assert len({*tried}) > 100


@pytest.mark.parametrize("name", sorted(BUNDLED))
def test_whatever_a_module_is_set_to_is_made_or_refused(name: str) -> None:
    values, module = Values(SEED), load(name)
    for setting in module.manifest().settings or ():
        for value in (*WHOLE, *NUMBERS, *SHAPES, *(values.value() for _ in range(EACH))):
            with suppress(HapteraError):
                module.settings({setting.name: value})


@pytest.mark.net
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_no_value_of_any_field_ends_a_daemon_or_ends_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (programs := tmp_path / "programs").mkdir()
    a_slurm(programs, monkeypatch)
    text = json.dumps(SITE).replace("{", "{{").replace("}", "}}")
    lab, statuses = Lab(tmp_path, text), Counter[int]()
    with lab.running(), closing(Watched(lab)) as watched:
        watched.works()
        before = watched.ask("GET", "/v1/entities/node:n2")[1]["attributes"]
        for method, path, body in asked():
            status, told = watched.ask(method, path, body)
            assert status < 500, (method, path[:200], str(body)[:500], told)
            statuses[status] += 1
        for at, site in accepted():
            status, told = watched.ask("POST", "/v1/apply?take=1", watched.site(site))
            assert status < 500, (at, told)
            statuses[status] += 1
        assert watched.ask("POST", "/v1/apply?take=1", watched.site(SITE))[0] < 300
        for path in ("/v1/queue", "/v1/jobs", "/v1/status", "/v1/entities", "/v1/freezes"):
            assert watched.ask("GET", path)[0] == 200
        watched.works()
        watched.kill()
        watched.works()
        watched.undo(before)
        watched.works()
    # Most of them are refused, and as many reach what is behind.
    assert statuses[400] > 100, statuses
    assert statuses[200] + statuses[201] > 100, statuses


def asked() -> Iterator[tuple[str, str, Any]]:
    yield from patches(Values(SEED), EACH, THERE)
    yield from requests(Values(SEED), EACH)


def accepted() -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Of each place, the first site that is one: what is in it reaches what is behind."""
    seen = set[tuple[str | int, ...]]()
    for at, site in sites(EACH):
        if at[0] not in MEANT and at not in seen and is_read(site):
            seen.add(at)
            yield at, site
