"""What is said of an image, signed by the cluster's authority: name, digest, and how it runs.

Three hold on to each other: the authority certifies a signer, whose key is for manifests, and for
calls to a parent above, where images are fetched; the signer signs a manifest; the manifest names
the digest of the artefact.
"""

import hashlib
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from haptera.kinds import image
from haptera.sdk import HapteraError

MANIFEST_BYTES_MAX: Final = 64 << 10
DIGEST: Final = image.DIGEST
# Where a command is looked for by its name, unless the environment has a PATH.
PATH_DEFAULT: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CHUNK_BYTES: Final = 1 << 20

_DO: Final = (
    "build the image anew; if that does not help, check which server answers instead of the parent"
)


class ImageManifest(msgspec.Struct, frozen=True):
    """One image: its artefact, with the files of the root, by digest and size, and what is run.

    `command` is the init, by a path in the image or a name that its `environment` has a PATH for.
    `number` is higher for each further one of a name; versions that knew of none send none.
    """

    name: str
    digest: str
    size_bytes: int
    architecture: str
    command: tuple[str, ...]
    environment: tuple[str, ...] = ()
    folder: str = "/"
    stop_signal: str = "SIGTERM"
    recipe: str = ""
    number: int = 0


def command_places(manifest: ImageManifest) -> list[str]:
    """The paths in the image at which its command may be, the first one that is there counts."""
    command = manifest.command[0]
    environment = dict(one.partition("=")[::2] for one in manifest.environment)
    folders = [""] if "/" in command else environment.get("PATH", PATH_DEFAULT).split(":")
    return [f"{folder}/{command}" for folder in folders]


class Signed(msgspec.Struct, frozen=True):
    """A manifest as JSON, its signature, and the certificate of who signed, in PEM."""

    manifest: bytes
    signature: bytes
    certificate: str


def sign(manifest: ImageManifest, signer: bytes) -> bytes:
    """The signed manifest as it is kept and sent; `signer` is a key and its certificate, in PEM."""
    key = serialization.load_pem_private_key(signer, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    certificate = x509.load_pem_x509_certificate(signer)
    text = msgspec.json.encode(manifest)
    pem = certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")
    return msgspec.json.encode(Signed(text, key.sign(text, ec.ECDSA(hashes.SHA256())), pem))


def read(content: bytes) -> ImageManifest:
    """The content of a signed manifest, no matter who signed it.

    Raises:
        HapteraError: it says nothing.
    """
    try:
        return msgspec.json.decode(
            msgspec.json.decode(content, type=Signed).manifest, type=ImageManifest
        )
    except (ValueError, RecursionError) as error:
        raise HapteraError(f"this is not the manifest of an image: {error}", do=_DO) from None


def verified(content: bytes, ca_pem: bytes, reference: str) -> ImageManifest:
    """What a signed manifest says, once all that holds it to the authority was checked.

    Raises:
        HapteraError: it is not signed by the cluster's authority, or is of another image.
    """
    manifest = read(content)
    signed = msgspec.json.decode(content, type=Signed)
    try:
        _check(signed, x509.load_pem_x509_certificate(ca_pem))
    except (ValueError, TypeError, x509.ExtensionNotFound, InvalidSignature) as error:
        why = str(error) or "the signature does not fit"
        what = f"the manifest is not signed by the cluster's authority: {why}"
        raise HapteraError(what, where=f"image {reference}", do=_DO) from None
    if reference not in (manifest.name, manifest.digest):
        what = f"the manifest is that of {manifest.name}"
        raise HapteraError(what, where=f"image {reference}", do=_DO)
    return manifest


def digest_of(artefact: Path, size_bytes: int | None = None) -> str:
    """The digest of a file, or of so many bytes at its beginning, as manifests name it."""
    with artefact.open("rb") as file:
        if size_bytes is None:
            return DIGEST + hashlib.file_digest(file, "sha256").hexdigest()
        found, left = hashlib.sha256(), size_bytes
        while left and (chunk := file.read(min(left, CHUNK_BYTES))):
            found.update(chunk)
            left -= len(chunk)
        return DIGEST + found.hexdigest()


def _check(signed: Signed, authority: x509.Certificate) -> None:
    signer = x509.load_pem_x509_certificate(signed.certificate.encode("ascii"))
    signer.verify_directly_issued_by(authority)
    if f"{_uri(authority).removesuffix('/ca')}/images" != _uri(signer):
        raise ValueError("the certificate that signed it may not sign images")
    key = signer.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise TypeError("the key is of another sort")
    key.verify(signed.signature, signed.manifest, ec.ECDSA(hashes.SHA256()))


def _uri(certificate: x509.Certificate) -> str:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return next(iter(names.get_values_for_type(x509.UniformResourceIdentifier)), "")
