"""TLS 1.3 between a parent and its nodes: who may be spoken with, and who it is that speaks."""

import asyncio
import re
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from haptera.model.errors import Code, HapteraError
from haptera.runtime.identity.cluster_uris import images_uri, node_uri, parent_uri

# X509_V_FLAG_NO_CHECK_TIME: a node that just booted may have no clock; enrolment is where it
# learns the time, so towards its parent the pinned authority must do. And a parent lets a node
# whose certificate has ended in to renew it, and for nothing else.
_NO_CHECK_TIME: Final = 0x200000
_UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CLIENT: Final = re.compile(rf"haptera://({_UUID})/client/([0-9a-f]{{16}})")
_BOOT: Final = re.compile(rf"haptera://({_UUID})/node/({_UUID})/incarnation/([0-9]{{1,19}})")

Certificate = dict[str, Any] | None


def hang_up(transport: asyncio.WriteTransport) -> None:
    """End a connection at once, whatever was done with it before."""
    # The transport of Python 3.11.2 (Debian 12) has no protocol left once it was closed twice.
    with suppress(AttributeError):
        transport.abort()


def server_context(identity: Path, ca_pem: bytes, demand: ssl.VerifyMode) -> ssl.SSLContext:
    """What is served with; `identity` holds key and certificate.

    `demand` says whether callers must show a certificate that holds.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    context.verify_mode = demand
    _trust(context, ca_pem)
    context.load_cert_chain(identity)
    return context


def enrolling_context(identity: Path, ca_pem: bytes) -> ssl.SSLContext:
    """What a parent serves its nodes with.

    It takes callers without a certificate, who may only enrol, and such whose certificate has
    ended, who may only have it renewed: who answers them sees to that.
    """
    context = server_context(identity, ca_pem, ssl.CERT_OPTIONAL)
    context.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
    return context


def client_context(ca_pem: bytes, identity: Path | None = None) -> ssl.SSLContext:
    """The context of a node's calls to its parent: this authority must certify the answering side.

    Raises:
        HapteraError: `ca_pem` is no certificate.
    """
    context = _calling(ca_pem)
    context.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
    if identity is not None:
        context.load_cert_chain(identity)
    return context


def parent_context(ca_pem: bytes, identity: Path) -> ssl.SSLContext:
    """What a parent calls its nodes with; it has a clock, and their certificates end."""
    context = _calling(ca_pem)
    context.load_cert_chain(identity)
    return context


def is_parent(certificate: Certificate, cluster: UUID) -> bool:
    """Whether a verified certificate, as `ssl` tells it, is the parent's of this cluster."""
    return parent_uri(cluster) in _uris(certificate)


def signs_images(certificate: Certificate, cluster: UUID) -> bool:
    """Whether a verified certificate is one of those by which parents sign images."""
    return images_uri(cluster) in _uris(certificate)


def is_node(certificate: Certificate, cluster: UUID, node: UUID) -> bool:
    """Whether a verified certificate is this node's."""
    return node_uri(cluster, node) in _uris(certificate)


def ended_ago_s(certificate: Certificate, wall_s: float) -> float:
    """How long ago a verified certificate ended by this clock; below zero, it has not."""
    assert certificate, "it was verified"
    return wall_s - ssl.cert_time_to_seconds(certificate["notAfter"])


def node_of(certificate: Certificate, cluster: UUID) -> tuple[UUID, int] | None:
    """Which node of this cluster a verified certificate is, and in which incarnation."""
    for uri in _uris(certificate):
        told = _BOOT.fullmatch(uri)
        if told is not None and told[1] == str(cluster):
            return UUID(told[2]), int(told[3])
    return None


def client_of(certificate: Certificate) -> tuple[UUID, str] | None:
    """The token, and its cluster, that a verified certificate stands for."""
    for uri in _uris(certificate):
        told = _CLIENT.fullmatch(uri)
        if told is not None:
            return UUID(told[1]), told[2]
    return None


def _calling(ca_pem: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # who it is, the URI in its certificate says
    context.verify_mode = ssl.CERT_REQUIRED
    _trust(context, ca_pem)
    return context


def _trust(context: ssl.SSLContext, ca_pem: bytes) -> None:
    try:
        context.load_verify_locations(cadata=ca_pem.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise HapteraError(
            "the authority's certificate cannot be read",
            do="use the ca.pem of the parent",
            code=Code.FILE_UNREADABLE,
        ) from error


def _uris(certificate: Certificate) -> list[str]:
    names = (certificate or {}).get("subjectAltName", ())
    return [text for sort, text in names if sort == "URI"]
