"""TLS 1.3 as enrolment uses it: the parent shows who it is, the node has but a token."""

import ssl
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from haptera.model.errors import HapteraError
from haptera.runtime.pki import parent_uri

# X509_V_FLAG_NO_CHECK_TIME: a node that just booted may have no clock; enrolment is where it
# learns the time, so for this one connection the pinned authority must do.
_NO_CHECK_TIME: Final = 0x200000


def server_context(identity: Path) -> ssl.SSLContext:
    """What the parent serves with; `identity` holds its key and certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    context.load_cert_chain(identity)
    return context


def client_context(ca_pem: bytes) -> ssl.SSLContext:
    """What a node enrols with: whoever answers must be certified by this authority.

    Raises:
        HapteraError: `ca_pem` is no certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # who it is, `is_parent` sees
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
    try:
        context.load_verify_locations(cadata=ca_pem.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise HapteraError(
            "the authority's certificate cannot be read", do="use the ca.pem of the parent"
        ) from error
    return context


def is_parent(certificate: dict[str, Any] | None, cluster: UUID) -> bool:
    """Whether a verified certificate, as `ssl` tells it, is the parent's of this cluster."""
    names = (certificate or {}).get("subjectAltName", ())
    return ("URI", parent_uri(cluster)) in names
