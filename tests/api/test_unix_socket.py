"""The Unix socket: who opens it is told by the kernel, and let in by a rule or not at all."""

import grp
import json
import os
import shutil
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from haptera.api.requests.callers import EntryRules
from haptera.api.serving.server import listen_unix
from haptera.model.changes import Declare
from haptera.model.entity import node_id
from haptera.model.errors import Code, HapteraError
from haptera.rest.unix_path import PATH_BYTES_MAX
from haptera.runtime.identity.tokens import Bearer, Scope
from haptera.runtime.network.peers import PeerRules, UnixPeer, unix_peer, user_name
from tests.api.serving import serving

NOBODY = 65_534
OTHER = 4_711
N1, N2 = node_id("n1"), node_id("n2")
WITHIN_S = 60
CURL = shutil.which("curl")

as_another = pytest.mark.skipif(
    os.getuid() != 0 or CURL is None, reason="only root can ask as another user, and by curl"
)


@pytest.fixture
def place():
    """A path that other users can reach too, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder / "api.sock"
    shutil.rmtree(folder)


def asked(path, target, *more, user=None, groups=()):
    """What somebody is answered: status and body."""
    whose = {} if user is None else {"user": user, "group": user, "extra_groups": groups}
    command = [CURL, "-s", "--unix-socket", path, "-w", "\n%{http_code}", *more]
    done = subprocess.run(
        [*command, f"http://localhost{target}"],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        cwd="/",
        check=False,
        **whose,
    )
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body) if body else None


def serves(path, *rules, mode=0o666):
    entry = EntryRules(check_peer=PeerRules.of(rules).bearer)
    changes = [Declare(N1, {}, "site"), Declare(N2, {}, "site")]
    return serving(*changes, entry=entry, path=path, mode=mode)


@as_another
def test_root_may_do_everything_without_a_token_and_is_named(place):
    with serves(place) as server:
        on = ("-X", "PATCH", "-d", '{"power": "on"}')
        status, view = asked(place, "/v1/entities/node:n1/desired", *on)
        assert (status, view["desired"]["power"]["owner"]) == (200, f"user:{user_name(0)}")
        assert asked(place, "/v1/tokens") == (200, {"tokens": []})
        assert server.backend.noted[0].who == "user:root"


@as_another
def test_others_are_refused_whom_no_rule_lets_in(place):
    with serves(place, "0=read", f"{OTHER}=read"):
        status, problem = asked(place, "/v1/summary", user=NOBODY)
        assert (status, problem["code"]) == (403, Code.FORBIDDEN)
        assert asked(place, "/v1/health", user=NOBODY)[0] == 200


@as_another
def test_a_rule_lets_in_as_far_as_its_scope_and_its_limit_go(place):
    with serves(place, f"{NOBODY}=write:n1"):
        name = user_name(NOBODY)
        _, told = asked(place, "/v1/entities", user=NOBODY)
        assert [one["entity"] for one in told["entities"]] == ["node:n1"]
        on = ("-X", "PATCH", "-d", '{"power": "on"}')
        status, view = asked(place, "/v1/entities/node:n1/desired", *on, user=NOBODY)
        assert (status, view["desired"]["power"]["owner"]) == (200, f"user:{name}")
        assert asked(place, "/v1/entities/node:n2/desired", *on, user=NOBODY)[0] == 403
        assert asked(place, "/v1/tokens", user=NOBODY)[0] == 403


@as_another
def test_a_rule_may_mean_a_group(place):
    with serves(place, f"@{OTHER}=read"):
        assert asked(place, "/v1/summary", user=NOBODY, groups=[OTHER])[0] == 200
        assert asked(place, "/v1/summary", user=NOBODY, groups=[OTHER + 1])[0] == 403


@as_another
def test_a_token_counts_before_who_asks(place):
    with serves(place):
        for token, status in (("read-token", 403), ("wrong", 401), ("admin-token", 200)):
            header = ("-H", f"Authorization: Bearer {token}")
            assert asked(place, "/v1/tokens", *header)[0] == status
        header = ("-H", "Authorization: Bearer admin-token")
        assert asked(place, "/v1/tokens", *header, user=NOBODY)[0] == 200
        page = asked(place, "/v1/summary", "-H", "Origin: https://evil.example")
        assert (page[0], page[1]["code"]) == (403, Code.FORBIDDEN)


@as_another
def test_the_socket_is_the_owners_alone_where_no_rule_lets_others_in(place):
    with serves(place, mode=0o600):
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert asked(place, "/v1/health", user=NOBODY)[0] == 0  # no connection
        assert asked(place, "/v1/summary")[0] == 200


def test_the_kernel_says_who_is_at_the_other_end():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        groups = frozenset({os.getgid(), *os.getgroups()})
        assert unix_peer(ours) == UnixPeer(os.getuid(), groups)


def test_the_first_rule_that_means_somebody_counts_and_root_needs_none():
    rules = PeerRules.of(
        [
            "4001=read",
            f"@{grp.getgrgid(os.getgid()).gr_name}=write:n[1-2]",
            "4001=admin",
            "4002=admin",
        ]
    )
    gid = os.getgid()
    held = {
        peer: rules.bearer(UnixPeer(peer, frozenset(groups)))
        for peer, groups in {
            0: [],
            os.getuid(): [],
            4001: [gid],
            4002: [],
            4003: [gid],
            4004: [gid + 1],
        }.items()
    }
    assert held == {
        0: Bearer(user_name(0), Scope.ADMIN),
        os.getuid(): Bearer(user_name(os.getuid()), Scope.ADMIN),
        4001: Bearer("uid4001", Scope.READ),
        4002: Bearer("uid4002", Scope.ADMIN),
        4003: Bearer("uid4003", Scope.WRITE, "n[1-2]"),
        4004: None,
    }


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ("eve", "'eve' is not a valid rule"),
        ("=read", "'=read' is not a valid rule"),
        ("0=root", "'0=root' is not a valid rule"),
        (
            "0=read:power=off",
            "'0=read:power=off' selects by state; limit access by names",
        ),
        ("nobody-of-this-name=read", "there is no nobody-of-this-name on this machine"),
        ("@nobody-of-this-name=read", "there is no @nobody-of-this-name on this machine"),
    ],
)
def test_what_is_no_rule_is_refused(rule, what):
    with pytest.raises(HapteraError) as error:
        PeerRules.of([rule])
    assert (error.value.what, error.value.do.startswith("write USER=SCOPE")) == (what, True)


def test_a_socket_that_was_left_behind_is_replaced_and_one_in_use_is_not(tmp_path):
    path = tmp_path / ("long" * 40) / "api.sock"
    path.parent.mkdir()
    first = listen_unix(path, 0o600)
    with pytest.raises(HapteraError, match="cannot listen: Address already in use"):
        listen_unix(path, 0o600)
    first.close()  # as a process that is killed leaves it
    listen_unix(path, 0o600).close()
    path.unlink()
    path.write_text("precious")
    with pytest.raises(HapteraError, match="cannot listen: Address already in use"):
        listen_unix(path, 0o600)
    assert path.read_text() == "precious"
    with pytest.raises(HapteraError, match="cannot listen: No such file or directory"):
        listen_unix(tmp_path / "nowhere" / "api.sock", 0o600)
    with pytest.raises(HapteraError, match="cannot listen: File name too long"):
        listen_unix(tmp_path / ("s" * PATH_BYTES_MAX), 0o600)
