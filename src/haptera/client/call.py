"""One call of the API as a value: what is sent, and the shape of what comes back."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import msgspec

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


def path(*words: str) -> str:
    """A path of the API from its words, whatever they hold.

    >>> path("entities", "service:web@n1", "desired")
    '/v1/entities/service:web@n1/desired'
    """
    return "/".join(["/v1", *(quote(word, safe=":@") for word in words)])
