"""Certificates of nodes as earlier versions issued them: of the node and its boot alone."""

from datetime import timedelta
from uuid import UUID

from cryptography import x509

from haptera.runtime.identity import pki
from haptera.runtime.identity.cluster_uris import boot_uri, node_uri


def issued_earlier(
    authority: pki.Authority,
    request: x509.CertificateSigningRequest,
    node: UUID,
    incarnation: int,
    wall_s: float,
) -> bytes:
    """As `issue_node` did: without an address, and without the name of all nodes."""
    cluster, key = authority.cluster, request.public_key()
    assert isinstance(key, pki.ec.EllipticCurvePublicKey)
    names = pki._names(node_uri(cluster, node), boot_uri(cluster, node, incarnation))
    return pki._issue(authority, key, names, wall_s, timedelta(hours=pki.NODE_HOURS))
