"""Who may write, on a real parent and its nodes: has nothing run but jobs, which reach nothing."""

import http.client
import json
import os
from contextlib import closing
from typing import Any

import pytest

from tests.faults.seen import WITHIN_S
from tests.kills.processes import wait_for
from tests.kills.rig import NODES, Lab

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(480)]

FIRST = NODES[0]
MARK = "sh -c 'touch {mark}'"
# Each with what it would have run, and the scope that it takes.
TRIED = (
    ("backend:evil", {"engine": "slurm", "conf": "{mark}"}, "conf", "admin"),
    ("image:evil", {"source": "docker://evil.example/root"}, "source", "admin"),
    (f"service:web@{FIRST}", {"command": MARK}, "command", "exec"),
    (f"service:web@{FIRST}", {"ready": "command touch {mark}"}, "ready", "exec"),
    ("group:evil", {"command": MARK, "replicas": 1}, "command", "exec"),
)


class Caller:
    """One token at the API of a lab."""

    def __init__(self, lab: Lab, token: str | None = None) -> None:
        known = json.loads((lab.root / "client.json").read_text())
        self.host = known["url"].removeprefix("http://")
        self.token = token or known["token"]

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        with closing(http.client.HTTPConnection(self.host, timeout=60)) as link:
            sent = None if body is None else json.dumps(body)
            link.request(method, path, sent, {"Authorization": f"Bearer {self.token}"})
            with link.getresponse() as answer:
                return answer.status, json.loads(answer.read())

    def made(self, lab: Lab, scope: str) -> "Caller":
        body = {"name": scope, "scope": scope, "for_s": 600}
        status, told = self.ask("POST", "/v1/tokens", body)
        assert status == 201, told
        return Caller(lab, told["text"])


def test_what_would_run_is_refused_by_name_and_none_of_it_has_run(lab: Lab) -> None:
    mark = lab.directory / "mark"
    writer = Caller(lab).made(lab, "write")
    for entity, desired, name, scope in TRIED:
        body = json.loads(json.dumps(desired).replace("{mark}", str(mark)))
        status, told = writer.ask("PATCH", f"/v1/entities/{entity}/desired?take=1", body)
        assert (status, told.get("code")) == (403, "forbidden"), told
        assert f"{entity}: {name} is " in told["what"]
        assert f"a token of scope {scope}" in told["what"]
    assert not mark.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only agents that are root run jobs as others")
def test_a_job_of_who_may_write_reads_no_key_of_the_node_or_the_parent(lab: Lab) -> None:
    # Nothing above the lab hides it.
    for one in lab.directory.parents:
        if one.stat().st_mode & 0o7 == 0:
            one.chmod(0o711)
    lab.directory.chmod(0o755)
    admin = Caller(lab)
    given = {"cpus": "1", "memory_mb": "64"}
    path = f"/v1/entities/node:{FIRST}/attributes?take=1"
    assert admin.ask("PATCH", path, given)[0] == 200
    keys = ("parent/ca.key", f"nodes/{FIRST}/run/session.json", f"nodes/{FIRST}/run/key.pem")
    held = [lab.root / one for one in keys if (lab.root / one).exists()]
    found = [*held, *lab.root.rglob("*.key"), *lab.root.rglob("session*"), lab.state]
    assert len(found) > 3
    script = f"id -u; cat {' '.join(map(str, found))}; find {lab.root} -type f -exec cat {{}} +"
    spec = {"command": ["sh", "-c", script], "size": {"cpus": 1, "memory_mb": 16}}
    status, told = admin.made(lab, "write").ask("POST", "/v1/jobs", {"spec": spec})
    assert status == 201, told

    def ended() -> Any:
        job = admin.ask("GET", f"/v1/jobs/{told['first']}")[1]
        return job if job["state"] in ("complete", "failed", "cancelled") else None

    job = wait_for("it has ended", ended, WITHIN_S)
    text = json.dumps(admin.ask("GET", f"/v1/entities/job:{told['first']}/log")[1])
    assert job["state"] == "failed", job
    assert "Permission denied" in text
    assert not [word for word in ("PRIVATE KEY", "SQLite format", '\\"secret') if word in text]
