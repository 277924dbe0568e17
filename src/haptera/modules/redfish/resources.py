"""Resources of a Redfish service: one that has to be there, one that may be, and lists of them."""

from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Final

from haptera.modules.redfish.connection import RedfishConnection
from haptera.modules.redfish.documents import Document
from haptera.modules.redfish.exchange import RedfishAnswer, RedfishError
from haptera.modules.redfish.sessions import ROOT_PATH

# Pages of a list that are read.
PAGES_MAX: Final = 32


def resource_at(connection: RedfishConnection, path: str) -> RedfishAnswer:
    """The resource at a path.

    Raises:
        RedfishError: it cannot be read, or is no resource.
    """
    answer = connection.read(path)
    if not answer.document.members:
        name = connection.name
        raise RedfishError(f"{name} is not a Redfish service: no object at {path}")
    return answer


def document_at(connection: RedfishConnection, path: str) -> Document:
    """The document at a path; empty if it cannot be read."""
    try:
        return connection.read(path).document
    except RedfishError:
        return Document({})


def reader(connection: RedfishConnection, within_s: float) -> Callable[[str], Document | None]:
    """A read of the document at a path: None where it fails, or `within_s` of the call are over."""
    ends_s = connection.left_s - within_s

    def read(path: str) -> Document | None:
        if connection.left_s < ends_s:
            return None
        found = document_at(connection, path)
        return found if found.members else None

    return read


def members_of(connection: RedfishConnection, name: str) -> Iterator[str]:
    """The paths in a list of the service's root, over all its pages (DSP0266, *nextLink*)."""
    usual = f"{ROOT_PATH}{name}"
    try:
        answer = resource_at(connection, usual)
    except RedfishError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        root = connection.read(ROOT_PATH)
        answer = connection.read(root.link(name) or usual)
    for _ in range(PAGES_MAX):
        yield from answer.links("Members")
        more = answer.link("Members@odata.nextLink") or answer.link("@odata.nextLink")
        if more is None:
            return
        answer = connection.read(more)
