"""`haptera serve` as a user meets it: why it does not start, and what a restart keeps."""

import os
import signal
import socket
import sqlite3
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from haptera.cli.main import NOTHING_DESIRED
from haptera.runtime.store.schema_sql import VERSION
from tests.cli.rig import (
    DESIRED,
    OTHER,
    SITE,
    client_of,
    command,
    desired,
    held,
    served,
    told,
    typed,
)
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow]


def refused_to_serve(home, *options, address=OTHER):
    (home / "site.yaml").write_text(SITE)
    site = ("--site", home / "site.yaml")
    return typed("serve", "--dir", home, "--listen", address, *site, *options, folder=home)


def test_a_port_in_use_is_named(tmp_path):
    stop = "stop what uses it, or give another address or port"
    with held(OTHER, 4270):
        assert refused_to_serve(tmp_path) == (
            1,
            "",
            told(
                "cannot listen: Address already in use",
                f"{OTHER}:4270/tcp",
                "choose another address with --listen or --api, or end what listens there",
            ),
        )
    with held(OTHER, 4271, socket.SOCK_DGRAM):
        assert refused_to_serve(tmp_path) == (
            1,
            "",
            told("cannot listen: Address already in use", f"{OTHER}:4271/udp", stop),
        )
    with held(OTHER, 4271):
        code, out, errors = refused_to_serve(tmp_path)
    assert (code, out) == (1, "")
    assert errors.startswith("error: cannot listen: Address already in use")
    assert errors.endswith(f"  {stop}\n")
    assert not client_of(tmp_path).exists()


@pytest.mark.parametrize("address", ["0.0.0.0", "127.foo", "localhost", "::1"])
def test_an_address_at_which_no_node_reaches_it_is_refused(tmp_path, address):
    assert refused_to_serve(tmp_path, address=address) == (
        1,
        "",
        told(
            "nodes and their parent reach each other at one IPv4 address, and this is not one",
            f"--listen {address}",
            "give an address of this machine; 127.0.0.1 if the nodes are on it too",
        ),
    )
    assert not (tmp_path / ".haptera").exists()


def test_a_first_start_needs_a_site_file(tmp_path):
    assert typed("serve", "--dir", tmp_path, folder=tmp_path) == (
        1,
        "",
        told(
            "no cluster was served here yet",
            tmp_path / ".haptera" / "parent",
            "name a site file with --site, or another directory with --dir",
        ),
    )
    assert list(tmp_path.iterdir()) == []


def test_what_somebody_took_since_is_left_to_them_at_a_restart_and_said(tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text(SITE)
    with served(tmp_path, "--site", site, address=OTHER):
        wait_for(lambda: desired(tmp_path) == DESIRED)
        client = client_of(tmp_path)
        assert typed("set", "n1", "power=off", "--take", folder=tmp_path, client=client)[0] == 0
    with served(tmp_path, "--site", site, address=OTHER):
        assert desired(tmp_path) == {**DESIRED, "node:n1": "off"}
        # One token of an admin, however often it was started.
        listed = typed("token", "list", folder=tmp_path, client=client_of(tmp_path))[1]
        assert listed.count("admin") == 1
    said = f"{site} is not applied: power of node:n1 belongs to user:cli, who wants off"
    assert said in (tmp_path / "serve.out").read_text()


def test_what_is_desired_survives_a_restart_and_no_other_cluster_takes_the_directory(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    other = tmp_path / "other.yaml"
    other.write_text("cluster: other\n")
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=OTHER):
        wait_for(lambda: desired(tmp_path) == DESIRED)
    assert typed(
        "serve", "--dir", tmp_path, "--listen", OTHER, "--site", other, folder=tmp_path
    ) == (
        1,
        "",
        told(
            "is of cluster small, not other",
            tmp_path / ".haptera" / "parent",
            "give each cluster a directory of its own (--dir)",
        ),
    )
    with served(tmp_path, address=OTHER):
        assert desired(tmp_path) == DESIRED
        client = client_of(tmp_path)
        assert typed("apply", "site.yaml", folder=tmp_path, client=client) == (
            0,
            "0 changes written (revision 4)\n",
            "",
        )


def test_a_state_file_from_a_newer_version_is_left_as_it_was(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=OTHER):
        pass
    file = tmp_path / ".haptera" / "parent" / "state.db"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = file.read_bytes()
    assert refused_to_serve(tmp_path) == (
        1,
        "",
        told(
            f"is of version 99, this haptera knows up to {VERSION}; nothing was changed",
            file,
            "start the newer haptera, or restore a backup from before the upgrade",
        ),
    )
    assert file.read_bytes() == before


@pytest.fixture
def small_disk(tmp_path):
    """A directory on a file system of its own that is soon full."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "none", str(disk)]
    if (done := subprocess.run(mount, capture_output=True, text=True)).returncode:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def fill(disk: Path) -> Path:
    file = disk / "fill"
    with file.open("wb", buffering=0) as out, suppress(OSError):
        while True:
            out.write(bytes(1024))
    return file


def test_a_full_disk_refuses_whole_and_is_usable_again(small_disk, tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "big.yaml").write_text(SITE.replace("n[1-2]", "n[1-400]"))
    client = client_of(small_disk)
    with served(small_disk, "--site", tmp_path / "site.yaml", address=OTHER):
        wait_for(lambda: desired(small_disk) == DESIRED)
        filler = fill(small_disk)
        assert typed("apply", "big.yaml", folder=tmp_path, client=client) == (
            1,
            "",
            told(
                "nothing was written: state.db: disk is full; nothing was changed",
                None,
                "fix the cause, then try again",
            ),
        )
        assert desired(small_disk) == DESIRED
        filler.unlink()
        code, out, _ = typed("apply", "big.yaml", folder=tmp_path, client=client)
        done = "796 changes (398 declare, 398 set) written (revision 800)"
        assert (code, out.splitlines()[0]) == (0, done)


def test_a_parent_does_not_start_on_a_full_disk(small_disk, tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    site = ("--site", tmp_path / "site.yaml")
    filler = fill(small_disk)
    code, out, errors = typed(
        "serve", "--dir", small_disk, "--listen", OTHER, *site, folder=small_disk
    )
    assert (code, out, errors) == (
        1,
        "",
        told(
            "cannot be used: No space left on device",
            small_disk / ".haptera" / "parent",
            "check the disk, then start again",
        ),
    )
    filler.unlink()
    with served(small_disk, *site, address=OTHER):
        wait_for(lambda: desired(small_disk) == DESIRED)


def test_a_parent_answers_while_it_reads_its_site(tmp_path):
    site, client = tmp_path / "site.yaml", client_of(tmp_path)
    os.mkfifo(site)
    serve = command("serve", "--dir", tmp_path, "--listen", OTHER, "--site", site)
    with subprocess.Popen(serve, stderr=subprocess.DEVNULL) as process:
        try:
            site.write_text(SITE)  # Once for what it serves, once to apply it.
            wait_for(client.exists)
            wait_for(lambda: typed("status", folder=tmp_path, client=client)[0] == 0)
            assert desired(tmp_path) == {}
            site.write_text(SITE)
            wait_for(lambda: desired(tmp_path) == DESIRED)
        finally:
            process.send_signal(signal.SIGINT)


def test_a_parent_of_which_nothing_is_desired_is_not_well(tmp_path):
    """Its own modules are there, and run; they are not what anybody waits for."""
    (tmp_path / "site.yaml").write_text("cluster: small\nmodules: [service]\n")
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=OTHER):
        for selector in ([], ["not (power=off)"]):
            code, out, errors = typed(
                "status", "--check", *selector, folder=tmp_path, client=client_of(tmp_path)
            )
            assert (code, out) == (NOTHING_DESIRED, "")
            assert errors == told("nothing is desired yet", do="apply a site: haptera apply FILE")


def test_what_apply_refuses_is_refused_when_it_is_planned(tmp_path):
    policy = "policies: [{for: 'node:n1', back_off: 10s, back_off_max: 2s}]\n"
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "wrong.yaml").write_text(SITE + policy)
    what = (
        "nothing was written: policy:site-1: sync.hear on node:n1:"
        " the back-off must be positive, and at most its own maximum"
    )
    refusal = (1, "", told(what, None, "fix the cause, then try again"))
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=OTHER):
        wait_for(lambda: desired(tmp_path) == DESIRED)
        for words in (("plan",), ("apply", "--dry-run"), ("apply",)):
            client = client_of(tmp_path)
            assert typed(*words, "wrong.yaml", folder=tmp_path, client=client) == refusal
        assert desired(tmp_path) == DESIRED


def test_no_code_comes_in_with_a_site_of_less_than_an_admin_over_a_restart_either(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    proof = tmp_path / "ran"
    script = tmp_path / "code.sh"
    script.write_text(f"#!/bin/sh\ntouch {proof}\n")
    script.chmod(0o700)
    brought = tmp_path / "brought.yaml"
    evil = f"{{evil: {{exec: [{script}], context: parent, enabled: true}}}}"
    brought.write_text(SITE.replace("[service]", evil))
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=OTHER):
        wait_for(lambda: desired(tmp_path) == DESIRED)
        make = ("token", "make", "eve", "--scope", "write", "--client-file")
        _, eve, _ = typed(*make, folder=tmp_path, client=client_of(tmp_path))
        (tmp_path / "eve.json").touch(0o600)
        (tmp_path / "eve.json").write_text(eve)
        code, _, errors = typed("apply", brought, folder=tmp_path, client=tmp_path / "eve.json")
        what = "the code of evil is not what this parent runs"
        assert (code, errors.partition("\n")[0]) == (1, f"error: {what}")
    with served(tmp_path, address=OTHER):
        assert desired(tmp_path) == DESIRED
        known = typed("get", "module", "-o", "name", folder=tmp_path, client=client_of(tmp_path))
        assert "evil" not in known[1]
    assert not proof.exists()
