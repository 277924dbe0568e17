"""The authority is made once, says who is who by UUID, and issues to keys that are proven."""

import dataclasses
import subprocess
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from uuid import UUID

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.errors import HapteraError
from haptera.runtime.identity.pki import (
    BACKDATED,
    Authority,
    cluster_of,
    issue_api,
    issue_client,
    issue_node,
    issue_parent,
    key_pem,
    make_request,
    new_key,
    open_authority,
    parse_key,
    parse_request,
    public_key_bytes,
)
from haptera.runtime.network.tls import client_of

NOW_S = 1_800_000_000.0
NOW = datetime.fromtimestamp(NOW_S, UTC)
NODE, HOST = UUID(int=5), "127.0.0.9"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return open_authority(tmp_path / "pki", NOW_S)


def issued(authority: Authority) -> x509.Certificate:
    request = parse_request(make_request(new_key()))
    assert request is not None
    return x509.load_pem_x509_certificate(issue_node(authority, request, NODE, 2, HOST, NOW_S))


def uris(certificate: x509.Certificate) -> list[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.UniformResourceIdentifier)


def test_the_authority_and_the_clusters_uuid_are_made_once(authority: Authority) -> None:
    again = open_authority(authority.directory, NOW_S + 1000.0)
    assert again.cluster == authority.cluster
    assert again.ca_pem == authority.ca_pem
    assert cluster_of(authority.ca_pem) == authority.cluster


def test_two_authorities_are_two_clusters(authority: Authority, tmp_path: Path) -> None:
    assert open_authority(tmp_path / "other", NOW_S).cluster != authority.cluster


def test_an_authority_is_made_for_the_cluster_that_is_asked_for_and_for_no_other(
    tmp_path: Path,
) -> None:
    assert open_authority(tmp_path / "one", NOW_S, UUID(int=1)).cluster == UUID(int=1)
    with pytest.raises(HapteraError, match=r"is of cluster .*1, not .*2"):
        open_authority(tmp_path / "one", NOW_S, UUID(int=2))


def test_only_the_owner_may_read_what_the_authority_keeps(authority: Authority) -> None:
    issue_parent(authority, NOW_S)
    modes = {file.name: file.stat().st_mode & 0o777 for file in authority.directory.iterdir()}
    assert modes == {"ca.key": 0o600, "ca.pem": 0o600, "parent.pem": 0o600}


def test_a_lost_copy_of_the_certificate_is_made_again(authority: Authority) -> None:
    public = authority.directory / "ca.pem"
    public.unlink()
    open_authority(authority.directory, NOW_S)
    assert public.read_bytes() == authority.ca_pem


def test_a_lost_key_is_told_and_no_new_cluster_begun(authority: Authority) -> None:
    (authority.directory / "ca.key").unlink()
    with pytest.raises(HapteraError, match=r"is missing, but ca\.pem is there"):
        open_authority(authority.directory, NOW_S)


@pytest.mark.parametrize("content", [b"", b"no PEM", key_pem(new_key())])
def test_a_damaged_key_is_told_and_left_alone(authority: Authority, content: bytes) -> None:
    place = authority.directory / "ca.key"
    place.write_bytes(content)
    with pytest.raises(HapteraError, match="cannot be read as the cluster's authority"):
        open_authority(authority.directory, NOW_S)
    assert place.read_bytes() == content


def test_a_key_beside_anothers_certificate_is_refused(authority: Authority) -> None:
    place = authority.directory / "ca.key"
    place.write_bytes(key_pem(new_key()) + authority.ca_pem)
    with pytest.raises(HapteraError, match="holds a key that is not its certificate's"):
        open_authority(authority.directory, NOW_S)


def test_a_node_is_its_uuid_in_one_boot_for_a_day_and_may_not_issue(authority: Authority) -> None:
    certificate = issued(authority)
    extensions = certificate.extensions
    node = f"haptera://{authority.cluster}/node/{NODE}"
    every = f"haptera://{authority.cluster}/node"
    assert uris(certificate) == [node, f"{node}/incarnation/2", every]
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ip_address(HOST)]
    assert certificate.not_valid_before_utc == NOW - BACKDATED
    assert certificate.not_valid_after_utc == NOW + timedelta(hours=24)
    assert list(extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.SERVER_AUTH,
        ExtendedKeyUsageOID.CLIENT_AUTH,
    ]
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert certificate.subject.rfc4514_string() == ""
    certificate.verify_directly_issued_by(authority.certificate)


def test_the_authority_issues_no_further_authority(authority: Authority) -> None:
    constraints = authority.certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert constraints.value == x509.BasicConstraints(ca=True, path_length=0)
    assert uris(authority.certificate) == [f"haptera://{authority.cluster}/ca"]


def test_the_parent_has_a_key_of_its_own_each_start(authority: Authority) -> None:
    place = issue_parent(authority, NOW_S)
    first = place.read_bytes()
    assert issue_parent(authority, NOW_S).read_bytes() != first
    certificate = x509.load_pem_x509_certificate(first)
    assert uris(certificate) == [f"haptera://{authority.cluster}/parent"]
    assert parse_key(first).public_key() == certificate.public_key()


def test_openssl_takes_these_certificates_strictly(authority: Authority, tmp_path: Path) -> None:
    node = tmp_path / "node.pem"
    node.write_bytes(issued(authority).public_bytes(serialization.Encoding.PEM))
    parent = issue_parent(authority, NOW_S)
    both = ("sslclient", "sslserver")
    for place, purpose in ((place, purpose) for place in (node, parent) for purpose in both):
        command = ["openssl", "verify", "-x509_strict", "-purpose", purpose]
        command += ["-attime", str(int(NOW_S)), "-CAfile", str(authority.directory / "ca.pem")]
        try:
            done = subprocess.run([*command, str(place)], capture_output=True, check=False)
        except FileNotFoundError:
            pytest.skip("there is no openssl command")
        assert done.returncode == 0, done.stderr


def test_no_key_is_shown(authority: Authority) -> None:
    assert "key=" not in repr(authority)
    assert "key" in {field.name for field in dataclasses.fields(authority)}


def test_the_same_key_is_told_from_others_whatever_the_request() -> None:
    key = new_key()
    requests = [parse_request(make_request(one)) for one in (key, key, new_key())]
    first, second, other = (public_key_bytes(one) for one in requests if one is not None)
    assert first == second != other


def signed(
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey,
) -> bytes:
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(key, algorithm).public_bytes(serialization.Encoding.PEM)


def test_only_keys_of_the_one_curve_are_taken() -> None:
    assert parse_request(signed(ec.generate_private_key(ec.SECP256R1()))) is not None
    assert parse_request(signed(ec.generate_private_key(ec.SECP384R1()))) is None
    assert parse_request(signed(rsa.generate_private_key(65537, 2048))) is None
    assert parse_request(signed(ed25519.Ed25519PrivateKey.generate())) is None


def test_a_request_signed_with_another_key_proves_nothing() -> None:
    one, other = (x509.load_pem_x509_csr(make_request(new_key())) for _ in range(2))
    der = one.public_bytes(serialization.Encoding.DER)
    forged = der.replace(public_key_bytes(one), public_key_bytes(other))
    assert forged != der
    pem = x509.load_der_x509_csr(forged).public_bytes(serialization.Encoding.PEM)
    assert parse_request(pem) is None


REQUEST = make_request(new_key())


@given(st.one_of(st.binary(max_size=300), st.tuples(st.integers(0), st.integers(0, 255))))
def test_bytes_that_are_no_request_are_refused_quietly(damage: bytes | tuple[int, int]) -> None:
    if isinstance(damage, bytes):
        assert parse_request(damage) is None
        return
    place, value = damage
    pem = bytearray(REQUEST)
    pem[place % len(pem)] = value
    request = parse_request(bytes(pem))
    whole = parse_request(REQUEST)
    assert whole is not None
    assert request is None or public_key_bytes(request) == public_key_bytes(whole)


def test_a_clients_certificate_stands_for_its_token_and_ends_with_it(authority: Authority) -> None:
    request = parse_request(make_request(new_key()))
    assert request is not None
    pem = issue_client(authority, request, "6f1d0c2b9a3e4f55", NOW_S, 60.0)
    certificate = x509.load_pem_x509_certificate(pem)
    assert uris(certificate) == [f"haptera://{authority.cluster}/client/6f1d0c2b9a3e4f55"]
    assert certificate.not_valid_after_utc == NOW + timedelta(seconds=60)
    certificate.verify_directly_issued_by(authority.certificate)
    told = {"subjectAltName": (("URI", uris(certificate)[0]),)}
    assert client_of(told) == (authority.cluster, "6f1d0c2b9a3e4f55")


def test_no_other_certificate_stands_for_a_token(authority: Authority) -> None:
    for uri in (*uris(issued(authority)), f"haptera://{authority.cluster}/client/", "x"):
        assert client_of({"subjectAltName": (("URI", uri),)}) is None
    assert client_of(None) is None


def test_the_apis_certificate_names_its_addresses_and_names(authority: Authority) -> None:
    place = issue_api(authority, ["::1", "head.example"], NOW_S)
    certificate = x509.load_pem_x509_certificate(place.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert uris(certificate) == [f"haptera://{authority.cluster}/api"]
    assert names.get_values_for_type(x509.IPAddress) == [ip_address("::1")]
    assert names.get_values_for_type(x509.DNSName) == ["head.example"]
