"""Calls to a node's parent over HTTPS: as this node, and to nobody but the parent."""

import http.client
import ssl
from dataclasses import dataclass
from typing import Final

from haptera.sdk import HapteraError, Uplink
from haptera.sdk.https import CheckedConnection

ANSWER_WITHIN_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Parent:
    """The parent; each call waits for a time."""

    uplink: Uplink

    def get(self, path: str, headers: dict[str, str]) -> http.client.HTTPResponse:
        """The answer to a request, whose body is the caller's to read, and to close.

        Raises:
            OSError: there is none.
            HapteraError: the server that answered is not the parent.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # who it is, the URI in its certificate says
        context.load_verify_locations(cadata=self.uplink.ca)
        context.load_cert_chain(self.uplink.identity)
        link = CheckedConnection(
            self.uplink.host,
            self.uplink.port,
            context=context,
            check=self._check,
            within_s=ANSWER_WITHIN_S,
        )
        # The answer's end ends the connection: there is nothing else to ask.
        link.request("GET", path, headers={**headers, "Connection": "close"})
        return link.getresponse()

    def _check(self, link: ssl.SSLSocket) -> None:
        if not _is_parent(link):
            raise HapteraError(
                "the server that answers is of this cluster, but is not the parent",
                where=str(self.uplink),
                do="see what listens there",
            )


def _is_parent(link: ssl.SSLSocket) -> bool:
    """Whether the authority's certificate calls the other side the parent."""
    names = (link.getpeercert() or {}).get("subjectAltName", ())
    return any(one[0] == "URI" and str(one[1]).endswith("/parent") for one in names)
