"""The cluster's own certificate authority: who its parent and its nodes are."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from haptera.model.errors import Code, HapteraError
from haptera.runtime.identity.cluster_uris import (
    any_node_uri,
    api_uri,
    boot_uri,
    client_uri,
    images_uri,
    node_uri,
    parent_uri,
)
from haptera.runtime.identity.private import private_directory, write_durable, write_private
from haptera.runtime.identity.sealing import UNSEALED, Sealer

CA_DAYS: Final = 3650
PARENT_DAYS: Final = 365
NODE_HOURS: Final = 24
# How far a clock that reads a new certificate may be behind ours.
BACKDATED: Final = timedelta(hours=1)
REQUEST_BYTES_MAX: Final = 8192

Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class Authority:
    """Issues certificates for one cluster; its key does not leave `directory`."""

    directory: Path
    cluster: UUID
    certificate: x509.Certificate
    key: Key = field(repr=False)

    @property
    def ca_pem(self) -> bytes:
        return _pem(self.certificate)


def open_authority(
    directory: Path, wall_s: float, cluster: UUID | None = None, sealer: Sealer = UNSEALED
) -> Authority:
    """Read the authority in this directory, or make one, and with it the cluster's UUID.

    With `cluster`, it is that cluster's.

    `ca.key` holds key and certificate, so that either both are there or none; `ca.pem` is a copy
    of the certificate to hand out. The first is sealed by `sealer`.

    Raises:
        HapteraError: what is there cannot be used; it is left as it was.
    """
    private_directory(directory)
    place, public = directory / "ca.key", directory / "ca.pem"
    if not place.exists():
        if public.exists():
            raise HapteraError(
                "is missing, but ca.pem is there",
                where=str(place),
                do="restore it from a backup; without it all nodes must be booted again",
                code=Code.STORAGE_UNREADABLE,
            )
        write_durable(place, sealer.sealed(_new_authority(cluster or uuid4(), wall_s)))
    authority = _read_authority(place, sealer)
    if cluster not in (None, authority.cluster):
        raise HapteraError(
            f"is of cluster {authority.cluster}, not {cluster}",
            where=str(place),
            do="give each cluster a directory of its own",
            code=Code.WRONG_CLUSTER,
        )
    if sealer.is_due(held := place.read_bytes()):
        write_durable(place, sealer.sealed(sealer.opened(held, str(place))))
    if not public.exists() or public.read_bytes() != authority.ca_pem:
        write_durable(public, authority.ca_pem)
    return authority


def _new_authority(cluster: UUID, wall_s: float) -> bytes:
    key = new_key()
    name = _name(cluster)
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(key.public_key(), name, wall_s, timedelta(days=CA_DAYS))
        .subject_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(_names(f"haptera://{cluster}/ca"), critical=False)
        .sign(key, hashes.SHA256())
    )
    return key_pem(key) + _pem(certificate)


def check_opens(directory: Path, sealer: Sealer) -> None:
    """See that the authority in this directory, if there is one, could be opened.

    Raises:
        HapteraError: it is sealed with a key that is not given.
    """
    if (place := directory / "ca.key").exists():
        sealer.opened(place.read_bytes(), str(place))


def _read_authority(place: Path, sealer: Sealer) -> Authority:
    try:
        content = sealer.opened(place.read_bytes(), str(place))
        key = serialization.load_pem_private_key(content, password=None)
        certificate = x509.load_pem_x509_certificate(content)
        cluster = _cluster_of(certificate)
    except (OSError, ValueError, x509.ExtensionNotFound) as error:
        raise HapteraError(
            "cannot be read as the cluster's authority",
            where=str(place),
            do="restore it from a backup",
            code=Code.STORAGE_UNREADABLE,
        ) from error
    if not isinstance(key, Key) or key.public_key() != certificate.public_key():
        raise HapteraError(
            "holds a key that is not its certificate's",
            where=str(place),
            do="restore it from a backup",
            code=Code.STORAGE_UNREADABLE,
        )
    return Authority(place.parent, cluster, certificate, key)


def issue_parent(authority: Authority, wall_s: float) -> Path:
    """Make this start's key and certificate for the parent; returns the file that holds both."""
    key = new_key()
    certificate = _issue(
        authority,
        key.public_key(),
        _names(parent_uri(authority.cluster)),
        wall_s,
        timedelta(days=PARENT_DAYS),
    )
    place = authority.directory / "parent.pem"
    write_private(place, key_pem(key) + certificate)
    return place


def issue_images(authority: Authority, wall_s: float) -> Path:
    """Make this start's key and certificate to sign manifests of images with."""
    key = new_key()
    names = _names(images_uri(authority.cluster))
    certificate = _issue(authority, key.public_key(), names, wall_s, timedelta(days=PARENT_DAYS))
    place = private_directory(authority.directory / "images") / "signer.pem"
    write_private(place, key_pem(key) + certificate)
    return place


def issue_api(authority: Authority, hosts: Collection[str], wall_s: float) -> Path:
    """Make this start's key and certificate for the API, as it is called: by names or addresses."""
    key = new_key()
    names = _names(api_uri(authority.cluster), hosts=hosts)
    lifetime = timedelta(days=PARENT_DAYS)
    certificate = _issue(authority, key.public_key(), names, wall_s, lifetime)
    place = authority.directory / "api.pem"
    write_private(place, key_pem(key) + certificate)
    return place


def issue_client(
    authority: Authority,
    request: x509.CertificateSigningRequest,
    token: str,
    wall_s: float,
    lifetime_s: float,
) -> bytes:
    """A certificate that stands for a token of the API, for the key of a request, in PEM."""
    key = request.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    names = _names(client_uri(authority.cluster, token))
    return _issue(authority, key, names, wall_s, timedelta(seconds=lifetime_s))


def issue_node(
    authority: Authority,
    request: x509.CertificateSigningRequest,
    node: UUID,
    incarnation: int,
    host: str,
    wall_s: float,
) -> bytes:
    """A certificate for the key of a request, in PEM; nothing else in the request counts.

    It says in which incarnation: a node that has booted since is another. With it the node may
    serve others of its cluster at `host`, its declared address, and is one of those who may call.
    """
    key = request.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    cluster = authority.cluster
    uris = node_uri(cluster, node), boot_uri(cluster, node, incarnation), any_node_uri(cluster)
    # Nobody resolves other names; the node is in order all the same.
    names = _names(*uris, hosts=[host] if host.isascii() else [])
    return _issue(authority, key, names, wall_s, timedelta(hours=NODE_HOURS))


def half_life_s(pem: bytes) -> float:
    """The wall time at which half of a certificate's life is over.

    Raises:
        ValueError: it is no certificate.
    """
    certificate = x509.load_pem_x509_certificate(pem)
    begin = (certificate.not_valid_before_utc + BACKDATED).timestamp()
    return (begin + certificate.not_valid_after_utc.timestamp()) / 2


def is_for_any_node(pem: bytes, cluster: UUID) -> bool:
    """Whether a certificate has the name of all nodes, as those of earlier versions do not.

    Raises:
        ValueError: it is no certificate.
    """
    return any_node_uri(cluster) in _uris(x509.load_pem_x509_certificate(pem))


def ends_s(pem: bytes) -> float:
    """The wall time at which a certificate ends.

    Raises:
        ValueError: it is no certificate.
    """
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()


def new_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def parse_key(pem: bytes) -> Key:
    """Read what `key_pem` wrote.

    Raises:
        ValueError: it is no such key.
    """
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, Key):
        raise ValueError("not an elliptic-curve key")  # noqa: TRY004  reported like other bad content
    return key


def make_request(key: Key) -> bytes:
    """A request for a certificate, in PEM; it says nothing but the key, which it proves."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def parse_request(pem: bytes) -> x509.CertificateSigningRequest | None:
    """Read a request for a P-256 key that its sender has; None where it is not that."""
    if len(pem) > REQUEST_BYTES_MAX:
        return None
    try:
        request = x509.load_pem_x509_csr(pem)
        key = request.public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey) or not request.is_signature_valid:
            return None
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion):
        return None
    return request if isinstance(key.curve, ec.SECP256R1) else None


def public_key_bytes(request: x509.CertificateSigningRequest) -> bytes:
    """What tells one key from another."""
    return request.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def cluster_of(ca_pem: bytes) -> UUID:
    """Which cluster's authority this is.

    Raises:
        HapteraError: it is none.
    """
    try:
        return _cluster_of(x509.load_pem_x509_certificate(ca_pem))
    except (ValueError, x509.ExtensionNotFound) as error:
        raise HapteraError(
            "this is not the certificate of an authority", do="use the ca.pem of the parent"
        ) from error


def _cluster_of(certificate: x509.Certificate) -> UUID:
    for uri in _uris(certificate):
        scheme, _, rest = uri.partition("://")
        cluster, _, role = rest.partition("/")
        if scheme == "haptera" and role == "ca":
            return UUID(cluster)
    raise ValueError("no authority of haptera")


def _uris(certificate: x509.Certificate) -> list[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return names.get_values_for_type(x509.UniformResourceIdentifier)


def _issue(
    authority: Authority,
    key: ec.EllipticCurvePublicKey,
    names: x509.SubjectAlternativeName,
    wall_s: float,
    lifetime: timedelta,
) -> bytes:
    """A certificate that says by its names who holds the key.

    Each side serves and calls: the URI decides who may do what, not a use of the key.
    """
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        _builder(key, authority.certificate.subject, wall_s, lifetime)
        .subject_name(x509.Name([]))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
        # Critical, as is due where the subject is empty.
        .add_extension(names, critical=True)
        .sign(authority.key, hashes.SHA256())
    )
    return _pem(certificate)


def _builder(
    key: ec.EllipticCurvePublicKey, issuer: x509.Name, wall_s: float, lifetime: timedelta
) -> x509.CertificateBuilder:
    now = datetime.fromtimestamp(wall_s, UTC)
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(cluster: UUID) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"haptera {cluster}")])


def _names(*uris: str, hosts: Collection[str] = ()) -> x509.SubjectAlternativeName:
    named = [x509.UniformResourceIdentifier(uri) for uri in uris]
    return x509.SubjectAlternativeName([*named, *map(_host, hosts)])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
