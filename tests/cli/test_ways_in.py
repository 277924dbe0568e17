"""The ways in to a real parent: TLS, client certificates and the socket, by curl and by haptera."""

import json
import shutil
import subprocess
from dataclasses import replace
from uuid import UUID

import pytest

from haptera.model.errors import Code
from haptera.runtime.clock import wall_s
from haptera.runtime.identity.pki import (
    issue_client,
    issue_node,
    key_pem,
    make_request,
    new_key,
    open_authority,
    parse_request,
)
from tests.cli.rig import SITE, client_of, served, told, typed
from tests.lab.rig import WAIT_S_MAX
from tests.network import NETWORK, ipv6_loopback

CURL = shutil.which("curl")
pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.skipif(CURL is None, reason="there is no curl here"),
]
ADDRESS, PORT = f"{NETWORK}.42.1", 4270


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The folder of a parent whose API is served over IPv6, with TLS."""
    home = tmp_path_factory.mktemp("ways")
    (home / "site.yaml").write_text(SITE)
    ways = ("--site", home / "site.yaml", "--api", "::1", "--host", "head.example")
    with ipv6_loopback(), served(home, *ways, address=ADDRESS):
        yield home


def haptera(home, *arguments, client=None):
    return typed(*arguments, folder=home, client=client or client_of(home))


def certified(home, name, *options):
    """A certificate for NAME: its file, and its id."""
    place = home / f"{name}.pem"
    code, out, said = haptera(home, "token", "certify", name, place, *options)
    assert (code, out) == (0, "")
    return place, said.partition(":")[0]


def curl(home, *arguments):
    """What curl is answered: status and body; status 0 is none."""
    trusted = ("--cacert", home / ".haptera" / "parent" / "ca.pem")
    done = subprocess.run(
        [CURL, "-s", "-w", "\n%{http_code}", *trusted, *arguments],
        capture_output=True,
        text=True,
        timeout=WAIT_S_MAX,
        check=False,
    )
    body, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(body) if body else None


URL = f"https://[::1]:{PORT}/v1"


def test_the_client_file_trusts_the_clusters_authority(home):
    client = json.loads(client_of(home).read_text())
    assert client["url"] == f"https://[::1]:{PORT}"
    assert client["authority"] == (home / ".haptera" / "parent" / "ca.pem").read_text()
    assert haptera(home, "get", "node", "-o", "name") == (0, "node:n[1-2]\n", "")
    stranger = home / "stranger.json"
    stranger.write_text(json.dumps({"url": client["url"], "token": client["token"]}))
    stranger.chmod(0o600)
    code, out, errors = haptera(home, "status", client=stranger)
    assert (code != 0, out) == (True, "")
    assert "cannot reach the parent" in errors


def test_a_certificate_is_who_one_is_and_what_one_may(home):
    place, _ = certified(home, "eve", "--scope", "write", "--within", "n1")
    run = ("-E", place, "-X", "PATCH", "-d", '{"run": "running"}')
    status, view = curl(home, *run, f"{URL}/entities/module:service@n1/desired")
    assert (status, view["desired"]["run"]["owner"]) == (200, "user:eve")
    patch = ("-E", place, "-X", "PATCH", "-d", '{"power": "off"}')
    status, problem = curl(home, *patch, f"{URL}/entities/node:n2/desired")
    assert (status, problem["what"]) == (
        403,
        "the token is limited to n1, which does not include node:n2",
    )
    assert curl(home, "-E", place, f"{URL}/tokens")[0] == 403
    _, found = curl(home, "-E", place, f"{URL}/entities")
    assert [one["entity"] for one in found["entities"]] == ["module:service@n1", "node:n1"]


def test_a_certificate_counts_for_the_own_page_and_for_no_page_elsewhere(home):
    place, _ = certified(home, "pam", "--scope", "write")
    own = ("-E", place, "-H", f"Origin: https://[::1]:{PORT}", "-H", "Sec-Fetch-Site: same-origin")
    patch = ("-X", "PATCH", "-d", '{"power": "on"}', f"{URL}/entities/node:n1/desired?take=1")
    assert curl(home, *own, *patch)[0] == 200
    for header in (
        "Origin: https://evil.example",
        f"Origin: http://[::1]:{PORT}",
        "Origin: null",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ):
        status, problem = curl(home, "-E", place, "-H", header, f"{URL}/summary")
        assert (status, problem["what"]) == (403, "a web page asks without a token"), header


def test_without_a_certificate_or_a_token_nobody_is_let_in(home):
    status, problem = curl(home, f"{URL}/summary")
    assert (status, problem["code"]) == (401, Code.UNAUTHENTICATED)
    assert curl(home, f"{URL}/health")[0] == 200
    token = json.loads(client_of(home).read_text())["token"]
    assert curl(home, "-H", f"Authorization: Bearer {token}", f"{URL}/summary")[0] == 200


def test_a_certificate_that_is_taken_back_lets_nobody_in(home):
    place, key = certified(home, "bob")
    assert curl(home, "-E", place, f"{URL}/summary")[0] == 200
    assert haptera(home, "token", "revoke", key) == (0, f"{key} of bob is revoked\n", "")
    status, problem = curl(home, "-E", place, f"{URL}/summary")
    assert (status, problem["what"]) == (403, f"the certificate of {key} has no access")


def test_certificates_that_are_none_of_clients_let_nobody_in(home):
    """The parent's own is certified by the same authority, another authority's is not heard."""
    parent = home / ".haptera" / "parent" / "parent.pem"
    status, problem = curl(home, "-E", parent, f"{URL}/summary")
    assert (status, problem["code"]) == (401, Code.UNAUTHENTICATED)
    stranger = home / "stranger.pem"
    crt = home / "stranger.crt"
    request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=eve"
    subprocess.run(
        ["openssl", *request.split(), "-keyout", stranger, "-out", crt],
        check=True,
        capture_output=True,
        timeout=WAIT_S_MAX,
    )
    stranger.write_text(stranger.read_text() + crt.read_text())
    assert curl(home, "-E", stranger, f"{URL}/summary")[0] == 0


@pytest.fixture(scope="module")
def admin(home):
    """The id of a certificate of scope admin, which others are made up after."""
    return certified(home, "root", "--scope", "admin")[1]


def of_a_node(authority, request, _token):
    return issue_node(authority, request, UUID(int=7), 1, "127.0.0.1", wall_s())


def that_has_ended(authority, request, token):
    return issue_client(authority, request, token, wall_s() - 900_000, 60)


def of_another_cluster(authority, request, token):
    return issue_client(replace(authority, cluster=UUID(int=1)), request, token, wall_s(), 600)


def of_no_token(authority, request, _token):
    return issue_client(authority, request, "0" * 16, wall_s(), 600)


def of_no_name_at_all(authority, request, _token):
    nobody = replace(authority, cluster="\n")
    return issue_client(nobody, request, "", wall_s(), 600)


@pytest.mark.parametrize(
    ("issue", "status"),
    [
        (of_a_node, 401),
        (that_has_ended, 0),
        (of_another_cluster, 403),
        (of_no_token, 403),
        (of_no_name_at_all, 401),
    ],
)
def test_no_other_certificate_of_the_clusters_own_authority_lets_anybody_in(
    home, admin, issue, status
):
    shown(home, issue, open_authority(home / ".haptera" / "parent", wall_s()), admin)
    assert curl(home, "-E", home / "shown.pem", f"{URL}/summary")[0] == status
    asked = curl(home, "-E", home / "shown.pem", f"{URL}/replica?as=standby")[0]
    assert asked == status


def test_the_authority_of_another_cluster_certifies_nobody_here(home, admin, tmp_path):
    ours = open_authority(home / ".haptera" / "parent", wall_s())
    theirs = replace(open_authority(tmp_path / "other", wall_s()), cluster=ours.cluster)
    shown(home, lambda *of: issue_client(*of, wall_s(), 600), theirs, admin)
    assert curl(home, "-E", home / "shown.pem", f"{URL}/summary")[0] == 0


def shown(home, issue, authority, token):
    """A certificate that this makes, with its key, in shown.pem."""
    key = new_key()
    request = parse_request(make_request(key))
    (home / "shown.pem").write_bytes(key_pem(key) + issue(authority, request, token))


def test_the_api_is_what_its_certificate_names_and_speaks_nothing_but_tls(home):
    named = f"https://head.example:{PORT}/v1/health"
    assert curl(home, "--resolve", f"head.example:{PORT}:[::1]", named)[0] == 200
    other = f"https://other.example:{PORT}/v1/health"
    assert curl(home, "--resolve", f"other.example:{PORT}:[::1]", other)[0] == 0
    assert curl(home, f"http://[::1]:{PORT}/v1/health")[0] == 0
    assert curl(home, "--tls-max", "1.2", f"{URL}/health")[0] == 0


def test_a_client_file_may_show_a_certificate(home):
    place, eve = home / "ada.pem", home / "ada.json"
    code, out, _ = haptera(
        home, "token", "certify", "ada", place, "--scope", "admin", "--client-file"
    )
    eve.write_text(out)
    eve.chmod(0o600)
    assert (code, "token" in json.loads(out)) == (0, False)
    assert haptera(home, "set", "node:n2", "power=on", "--take", client=eve)[0] == 0
    code, out, _ = haptera(home, "get", "node:n2", "-o", "json", client=eve)
    assert (code, json.loads(out)["desired"]["power"]["owner"]) == (0, "user:ada")
    place.write_text("nonsense")
    code, _, errors = haptera(home, "status", client=eve)
    assert (code, "is not a certificate with its key" in errors) == (1, True)


def test_the_socket_needs_no_client_file(home):
    (client_of(home)).rename(home / "kept.json")
    try:
        code, out, errors = typed("token", "list", folder=home)
    finally:
        (home / "kept.json").rename(client_of(home))
    assert (code, errors, "cli" in out) == (0, "", True)


def test_a_way_in_that_cannot_be_is_told(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)

    def refused(*ways):
        site = ("--site", tmp_path / "site.yaml", "--listen", f"{NETWORK}.42.2")
        code, _, errors = typed("serve", "--dir", tmp_path, *site, *ways, folder=tmp_path)
        assert code == 1
        return errors

    assert refused("--api", "head") == told(
        "this is not an address", "--api head", "give an IPv4 or IPv6 address"
    )
    assert refused("--api", "::") == told(
        "an API on all addresses needs a host name", "--api ::", "add --host NAME"
    )
    assert "'eve' is not a valid rule" in refused("--let-in", "eve")
    assert "cannot listen: No such file or directory" in refused(
        "--socket", tmp_path / "nowhere" / "s"
    )
