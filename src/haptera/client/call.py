"""One call of the API as a value: what is sent, and the shape of what comes back."""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from haptera.rest.endpoint import Endpoint

Shape = TypeVar("Shape")
Shape_co = TypeVar("Shape_co", covariant=True)


class ApiCall(msgspec.Struct, Generic[Shape_co], frozen=True):
    """What to ask: `gives` is the shape of the answer, `body` is sent as JSON unless it is None.

    >>> ApiCall("GET", "/v1/entities", dict, {"select": "rack1n[1-4]"}).target
    '/v1/entities?select=rack1n%5B1-4%5D'
    """

    method: str
    path: str
    gives: type[Shape_co]
    query: Mapping[str, str] = {}
    body: Any = None
    headers: Mapping[str, str] = {}

    @property
    def target(self) -> str:
        """The path and the query as they are sent."""
        return self.path + (f"?{urlencode(self.query)}" if self.query else "")

    @property
    def repeatable(self) -> bool:
        """Whether it may be sent once more, where it is in doubt that it arrived."""
        return self.method == "GET"


class ApiAnswer(msgspec.Struct, Generic[Shape_co], frozen=True):
    """What was answered; `tag` is the version to name with If-Match, where there is one."""

    value: Shape_co
    tag: str | None


Given = str | int | Iterable[str] | None


def call(
    endpoint: Endpoint[Shape],
    *words: str,
    body: Any = None,
    if_match: str | None = None,
    **query: Given,
) -> ApiCall[Shape]:
    """The call of an endpoint: `words` for the names in its path, and the query of what is given.

    None and False are not sent.

    >>> from haptera.rest import endpoints
    >>> call(endpoints.DESIRE, "service:web@n1", body={}, take=True, why=None).target
    '/v1/entities/service:web@n1/desired?take=1'
    """
    known = {one.name for one in endpoint.queries}
    if unknown := query.keys() - known:
        raise ValueError(f"{endpoint.path} has no {', '.join(unknown)} in its query")
    places = iter(quote(word, safe=":@") for word in words)
    path = "/".join(next(places) if "{" in part else part for part in endpoint.path.split("/"))
    said = {name: one for name, one in query.items() if one is not None and one is not False}
    return ApiCall(
        endpoint.method,
        path,
        endpoint.gives,
        {name: _text(value) for name, value in said.items()},
        body,
        {} if if_match is None else {"If-Match": if_match},
    )


def _text(value: str | int | Iterable[str]) -> str:
    match value:
        case str():
            return value
        case int():
            return str(int(value))
        case _:
            return ",".join(value)
