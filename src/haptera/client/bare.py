"""One call by the standard library alone: nodes have an agent, and not what other clients need."""

import http.client
from http import HTTPStatus
from typing import TypeVar

import msgspec

from haptera.client.access import Access
from haptera.client.address import Host, parse_address
from haptera.client.call import ApiCall
from haptera.client.errors import refused, unreachable
from haptera.client.trust import context_of
from haptera.model.errors import Code, HapteraError

WITHIN_S = 30.0
ANSWER_BYTES_MAX = 1 << 20

Shape = TypeVar("Shape")


def ask_bare(call: ApiCall[Shape], access: Access) -> Shape:
    """The answer to a call without a body.

    Raises:
        UnreachableError: nobody answers there.
        RefusedError: the answer is a problem, in the server's words.
        HapteraError: it is of another shape, or this is not the address of a host.
    """
    host = parse_address(access.url)
    if not isinstance(host, Host):
        do = "give its address on the network: https://ADDRESS:4270"
        raise HapteraError("a node cannot reach its parent by a socket", where=access.url, do=do)
    headers = {} if access.token is None else {"Authorization": f"Bearer {access.token}"}
    connection = _connection(host, access)
    try:
        connection.request(call.method, call.target, headers=headers)
        answer = connection.getresponse()
        body = answer.read(ANSWER_BYTES_MAX)
    except (OSError, http.client.HTTPException) as error:
        raise unreachable(access.url, error) from None
    finally:
        connection.close()
    if answer.status != HTTPStatus.OK:
        raise refused(body, access.url, answer.status)
    try:
        return msgspec.json.decode(body, type=call.gives)
    except (ValueError, RecursionError):
        what, do = "the answer cannot be understood", "install the parent's version here"
        raise HapteraError(what, where=access.url, do=do, code=Code.VERSION_MISMATCH) from None


def _connection(host: Host, access: Access) -> http.client.HTTPConnection:
    if not host.secure:
        return http.client.HTTPConnection(host.name, host.port, timeout=WITHIN_S)
    context = context_of(access)
    return http.client.HTTPSConnection(host.name, host.port, timeout=WITHIN_S, context=context)
