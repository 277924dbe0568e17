"""Secrets that modules are handed, on both sides: found where they are kept, and nowhere else."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.test_tokens import PUBLISHED, QUERIES
from tests.cli.rig import client_of, typed
from tests.faults.seen import WITHIN_S, healed
from tests.kills.processes import kill, wait_for
from tests.kills.rig import NODES, Lab

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(480)]

CANARY = b"canary-that-sings-of-nothing-else"
NAMED = f"node:{NODES[0]}"
FRAME_BYTES_MAX = 1 << 16


def test_no_secret_of_a_module_is_found_where_it_is_not_kept(lab: Lab) -> None:
    folder, client = lab.directory, client_of(lab.directory)
    given = f"{CANARY.decode()}\n"
    assert typed("secret", "set", "canary", folder=folder, client=client, given=given)[0] == 0
    settings = json.dumps({"key": {"secret": "canary"}})
    heard: list[bytes] = []
    with captured(heard):
        for module in ("module:labnode", f"module:service@{NODES[0]}"):
            code, _, errors = typed(
                "set", module, f"settings={settings}", folder=folder, client=client
            )
            assert (code, errors) == (0, ""), errors
        # The agent asks its parent for it, over TLS; then it is in use on both sides.
        wait_for("both have it", lambda: holding_in_memory(lab) >= {"labnode", "service"}, WITHIN_S)
        healed(lab)
        kill(lab.module(lab.agent(NODES[0]), "service"))
        healed(lab)
        told = bodies(lab)
    assert (len(told) > 20, len(heard) > 100) == (True, True)
    assert [path for path, body in told.items() if CANARY in body] == []
    assert sum(CANARY in frame for frame in heard) == 0
    assert on_disk(lab.directory) == {Path(".haptera/parent/secrets/canary")}
    assert of_processes(lab) == []


def holding_in_memory(lab: Lab) -> set[str]:
    """Modules whose process has the secret: the proof that there is something to be found."""
    owners = {"labnode": lab.parent(), "service": lab.agent(NODES[0])}
    return {name for name, owner in owners.items() if in_memory(lab.module(owner, name).pid)}


def in_memory(pid: int) -> bool:
    with suppress(OSError), Path(f"/proc/{pid}/mem").open("rb") as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            where, rights, *_ = line.split()
            start, end = (int(one, 16) for one in where.split("-"))
            if rights.startswith("rw"):
                memory.seek(start)
                with suppress(OSError):
                    if CANARY in memory.read(end - start):
                        return True
    return False


def bodies(lab: Lab) -> dict[str, bytes]:
    """What the API tells an admin of everything; but for a copy of all that a parent keeps."""
    told: dict[str, bytes] = {}
    with closing(lab.api()) as api:
        for path, methods in json.loads(PUBLISHED.read_text())["paths"].items():
            if "get" in methods and path not in ("/v1/replica", "/v1/events"):
                query = f"?{QUERIES[path]}" if path == "/v1/past" else ""
                answer = api.ask("GET", path.replace("{entity}", NAMED) + query)
                told[path] = b"" if answer is None else json.dumps(answer[2]).encode()
    return told


def on_disk(folder: Path) -> set[Path]:
    """All files in which it is: databases and their journals, logs, what processes print."""
    files = (one for one in folder.rglob("*") if one.is_file() and not one.is_symlink())
    return {one.relative_to(folder) for one in files if CANARY in one.read_bytes()}


def of_processes(lab: Lab) -> list[str]:
    """Processes whose arguments or environment have it, as others on the machine see them."""
    found = []
    for one in lab.leftovers():
        for name in ("cmdline", "environ"):
            with suppress(OSError):
                if CANARY in Path(f"/proc/{one.pid}/{name}").read_bytes():
                    found.append(f"{one.comm}: {name}")
    return found


@contextmanager
def captured(heard: list[bytes]) -> Iterator[None]:
    """All that goes over loopback meanwhile, as anybody with the right to listen sees it."""
    with capture() as listening:
        over = threading.Event()

        def listen() -> None:
            while not over.is_set():
                with suppress(TimeoutError):
                    heard.append(listening.recv(FRAME_BYTES_MAX))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def capture() -> Any:
    try:
        listening = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    except PermissionError:
        pytest.skip("listening to all of loopback takes root")
    listening.bind(("lo", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
    listening.settimeout(0.1)
    return closing(listening)
