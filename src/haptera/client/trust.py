"""Whom a client trusts over TLS, and as whom it shows itself."""

import ssl

from haptera.client.access import Access
from haptera.model.errors import UnreadableError


def context_of(access: Access) -> ssl.SSLContext:
    """What a connection is made with: the authority of the client file counts, or the system's.

    Raises:
        HapteraError: the authority, or the identity to show, cannot be used.
    """
    try:
        context = ssl.create_default_context(cadata=access.authority)
    except (ssl.SSLError, ValueError) as error:
        raise UnreadableError(
            "the authority's certificate cannot be read",
            where=access.url,
            do="use the client file that the parent wrote, or its ca.pem",
        ) from error
    if access.identity is not None:
        try:
            context.load_cert_chain(access.identity)
        except OSError as error:  # an SSLError too
            raise UnreadableError(
                f"is not a certificate with its key: {error.strerror or error}",
                where=access.identity,
                do="make one: haptera token certify NAME FILE",
            ) from error
    return context
