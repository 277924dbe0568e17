"""An etcd that asks for certificates is asked with one, and nobody else is taken for it."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from haptera.core.safety.tenure import LeaseSeeker
from haptera.model.errors import HapteraError
from tests.daemon.test_etcd_lease import ETCD, RELAY, Relay, etcd, lease

pytestmark = [pytest.mark.net, pytest.mark.campaign]

# etcd's JSON gateway shows etcd's own certificate to etcd.
SERVER = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
CLIENT = (ExtendedKeyUsageOID.CLIENT_AUTH,)
DAY = timedelta(days=1)


class SiteAuthority:
    """A certificate authority as a site has one, which knows nothing of haptera."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
        basic = x509.BasicConstraints(ca=True, path_length=None)
        made = self._builder(self._name, self._key).add_extension(basic, critical=True)
        self.pem = self._written("ca", made)

    def issue(self, name: str, purposes: tuple[x509.ObjectIdentifier, ...], *addresses: str) -> str:
        """A file with a certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._builder(named, key).add_extension(
            x509.ExtendedKeyUsage(purposes), critical=False
        )
        if addresses:
            names = [x509.IPAddress(ip_address(one)) for one in addresses]
            made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        text = self._written(name, made)
        text += key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()
        place = self._folder / f"{name}.pem"
        place.write_text(text)
        return str(place)

    @property
    def file(self) -> Path:
        return self._folder / "ca.crt"

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )

    def _written(self, name: str, made: x509.CertificateBuilder) -> str:
        pem = made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        (self._folder / f"{name}.crt").write_bytes(pem)
        return pem.decode()


def test_etcd_is_asked_with_a_certificate_and_known_by_its_own(tmp_path):
    own, other = SiteAuthority(tmp_path / "own"), SiteAuthority(tmp_path / "other")
    server = own.issue("server", SERVER, ETCD)
    as_one = {"authority": own.pem, "identity": own.issue("parent", CLIENT)}
    options = ("--cert-file", server, "--key-file", server)
    options += ("--client-cert-auth", "--trusted-ca-file", own.file)
    seeker = LeaseSeeker("a", 0, 0)
    with etcd(tmp_path, *options, **as_one) as url:
        held = lease(tmp_path, url, seeker, **as_one)
        assert held.take() is None
        held.renew()

        for unknown in ({}, {"identity": other.issue("parent", CLIENT)}):
            with pytest.raises(HapteraError, match="cannot reach etcd: "):
                lease(tmp_path, url, seeker, authority=own.pem, **unknown).is_held()
        for trusted in ({}, {"authority": other.pem}):  # {}: what the system trusts
            with pytest.raises(HapteraError, match="its certificate is refused: "):
                lease(tmp_path, url, seeker, identity=as_one["identity"], **trusted).is_held()

        relay = Relay()  # at an address that is not in etcd's certificate
        try:
            with pytest.raises(HapteraError, match=f"is refused: .* not valid for '{RELAY}'"):
                lease(tmp_path, f"https://{RELAY}:2379", seeker, **as_one).is_held()
        finally:
            relay.cut()
