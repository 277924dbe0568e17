"""A standby takes over by a lease in etcd, and a parent that lost its lease does nothing more."""

import json
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from haptera.core.safety.tenure import LeaseSeeker
from haptera.daemon.tree.etcd import Etcd
from haptera.daemon.tree.leased import LeaseInEtcd
from haptera.model.errors import HapteraError
from haptera.runtime.processes.secrets import SecretStore
from tests.cli.rig import client_of, typed
from tests.daemon.test_standby import WEB, asked, is_declared, lag, started, write
from tests.lab.rig import wait_for
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.campaign]

ETCD, RELAY = f"{NETWORK}.48.1", f"{NETWORK}.48.2"
PRIMARY, STANDBY = f"{NETWORK}.48.3", f"{NETWORK}.48.4"


@contextmanager
def etcd(folder: Path, *more: str | Path, **access: str) -> Iterator[str]:
    """A real etcd with these options more, asked with this access; the URL of it."""
    program = shutil.which("etcd")
    if program is None:
        pytest.skip("etcd is not installed (Debian: etcd-server)")
    url = f"{'https' if access else 'http'}://{ETCD}:2379"
    peers = f"http://{ETCD}:2380"
    options = [*more, "--data-dir", folder / "etcd", "--initial-cluster", f"default={peers}"]
    options += ["--listen-client-urls", url, "--advertise-client-urls", url]
    options += ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
    with (folder / "etcd.log").open("w") as log:
        process = subprocess.Popen([program, *options], stdout=log, stderr=log)
        try:
            wait_for(lambda: answers(folder, url, **access))
            yield url
        finally:
            process.kill()
            process.wait()


def answers(folder: Path, url: str, **access: str) -> bool:
    """Whether etcd answers, and nobody holds the lease."""
    with suppress(HapteraError):
        return not lease(folder, url, LeaseSeeker("nobody", 0, 0), **access).is_held()
    return False


def lease(folder: Path, url: str, own: LeaseSeeker, **access: str) -> LeaseInEtcd:
    return LeaseInEtcd(Etcd([str(etcd_file(folder, url, **access))], folder), "small", own)


def etcd_file(folder: Path, url: str, **access: str) -> Path:
    place = folder / f"{url.partition('//')[2]}.json"
    place.write_text(json.dumps({"url": url, "lease_s": 6, **access}))
    return place


class Relay:
    """Passes connections on to etcd, until it is cut."""

    def __init__(self) -> None:
        self.url = f"http://{RELAY}:2379"
        self._server = socket.create_server((RELAY, 2379))
        self._all: list[socket.socket] = [self._server]
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def cut(self) -> None:
        for one in self._all:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection((ETCD, 2379))
                self._all += [near, far]
                for pair in ((near, far), (far, near)):
                    self._threads.append(threading.Thread(target=self._pass, args=pair))
                    self._threads[-1].start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@contextmanager
def pair(folder: Path, url: str, primary_url: str):
    """A primary and its standby, which has all that was written."""
    for name in ("primary", "standby"):
        (folder / name).mkdir()
    site = folder / "site.yaml"
    site.write_text(WEB)
    client = client_of(folder / "primary")
    serve = ("serve", "--dir", folder / "primary", "--listen", PRIMARY, "--site", site)
    serve += ("--etcd", etcd_file(folder, primary_url))
    follow = ("standby", "--dir", folder / "standby", "--listen", STANDBY)
    follow += ("--etcd", etcd_file(folder, url))
    with started(*serve, log=folder / "primary.log") as primary:
        wait_for(lambda: is_declared(client))
        with started(*follow, log=folder / "standby.log", client=client) as standby:
            wait_for(lambda: lag(client) == ["0.0"])
            yield primary, standby, serve


def promoted(folder: Path) -> Path:
    """The client file of the standby, once it serves."""
    new = client_of(folder / "standby")
    wait_for(lambda: new.exists() and is_declared(new))
    return new


def port(client: Path) -> int:
    _, view = asked(client, "GET", "/v1/entities/service:web@n1")
    return view["desired"]["port"]["value"]


def test_a_parent_that_is_stopped_past_its_lease_never_acts_again(tmp_path):
    with etcd(tmp_path) as url, pair(tmp_path, url, url) as (primary, standby, serve):
        old = client_of(tmp_path / "primary")
        for number in range(1, 20):
            wait_for(lambda number=number: write(old, number) == "replicated")
        primary.send_signal(signal.SIGSTOP)
        new = promoted(tmp_path)
        assert port(new) == 1019
        assert write(new, 20) == "local"

        primary.send_signal(signal.SIGCONT)
        assert primary.wait(60) == -signal.SIGALRM
        code, _, told = typed(*serve[:-4], *serve[-2:], folder=tmp_path)
        assert (code, f"{STANDBY} has begun term 1" in told) == (1, True), told
        assert (port(new), standby.poll()) == (1020, None)


def test_a_parent_that_is_cut_off_from_etcd_stops_before_its_standby_takes_over(tmp_path):
    with etcd(tmp_path) as url:
        relay = Relay()
        try:
            with pair(tmp_path, url, relay.url) as (primary, _, _):
                old, number = client_of(tmp_path / "primary"), 0
                relay.cut()
                replicated, acknowledged_at = 0, 0
                # A write as it stops may end in any way; what was acknowledged was so before.
                with suppress(OSError, json.JSONDecodeError):
                    while primary.poll() is None:
                        number += 1
                        durability = write(old, number)
                        acknowledged_at = time.time_ns()
                        replicated = number if durability == "replicated" else replicated
                new = promoted(tmp_path)
                term = tmp_path / "standby" / ".haptera" / "parent" / "term"
                assert acknowledged_at < term.stat().st_mtime_ns
                assert port(new) >= 1000 + replicated > 1000
                assert primary.wait(60) in (1, -signal.SIGALRM)
                assert "cannot renew its lease" in (tmp_path / "primary.log").read_text()
        finally:
            relay.cut()


def test_of_two_seekers_one_has_the_lease_and_an_older_store_never_gets_it(tmp_path):
    with etcd(tmp_path) as url:
        first = lease(tmp_path, url, LeaseSeeker("a", 0, 0))
        assert first.take() is None
        assert lease(tmp_path, url, LeaseSeeker("b", 0, 1)).take() == "a holds the lease"
        # After a restart, its own lease is no other's.
        again = lease(tmp_path, url, LeaseSeeker("a", 0, 0))
        assert again.take() is None
        again.renew()
        asking = Etcd([str(etcd_file(tmp_path, url))], tmp_path)
        for one in asking.ask("/v3/lease/leases", {}, dict)["leases"]:
            asking.ask("/v3/lease/revoke", one, dict)
        with pytest.raises(HapteraError, match="is over"):
            again.renew()
        later = lease(tmp_path, url, LeaseSeeker("a", 0, 1))
        assert later.take() is None
        with pytest.raises(HapteraError, match="a has begun term 1"):
            lease(tmp_path, url, LeaseSeeker("b", 0, 1)).take()


def test_a_user_of_etcd_has_its_password_from_a_secret(tmp_path):
    with etcd(tmp_path) as url:
        anybody = Etcd([str(etcd_file(tmp_path, url))], tmp_path)
        anybody.ask("/v3/auth/user/add", {"name": "root", "password": "canary"}, dict)
        anybody.ask("/v3/auth/role/add", {"name": "root"}, dict)
        anybody.ask("/v3/auth/user/grant", {"user": "root", "role": "root"}, dict)
        anybody.ask("/v3/auth/enable", {}, dict)
        with pytest.raises(HapteraError, match="etcd answers with status 400"):
            lease(tmp_path, url, LeaseSeeker("a", 0, 0)).take()

        place = tmp_path / "root.json"
        place.write_text(
            json.dumps({"url": url, "user": "root", "password": {"secret": "etcd/root"}})
        )
        SecretStore(tmp_path).put("etcd/root", b"canary")
        own = LeaseInEtcd(Etcd([str(place)], tmp_path), "small", LeaseSeeker("a", 0, 0))
        assert own.take() is None
        own.renew()
