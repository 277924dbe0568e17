"""One call of the API as a value: what is sent, and the shape of what comes back."""

from collections.abc import Iterable, Mapping
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


def if_match_header(tag: str | None) -> dict[str, str]:
    """The header that names the version to change."""
    return {} if tag is None else {"If-Match": tag}


def query(**named: str | int | Iterable[str] | None) -> dict[str, str]:
    """The query of the given arguments, in the form that the API reads.

    >>> query(take=True, dry_run=False, limit=5, why=None, kinds=["node", "job"])
    {'take': '1', 'limit': '5', 'kinds': 'node,job'}
    """
    said = ((name, one) for name, one in named.items() if one is not None and one is not False)
    return {name: _text(value) for name, value in said}


def _text(value: str | int | Iterable[str]) -> str:
    match value:
        case str():
            return value
        case int():
            return str(int(value))
        case _:
            return ",".join(value)
