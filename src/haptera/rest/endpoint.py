"""One endpoint of the API as it is declared: server, client and documentation read this value."""

from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar

import msgspec

from haptera.model.text import whole_number
from haptera.model.token_scope import Scope
from haptera.rest.query import Query

Shape_co = TypeVar("Shape_co", covariant=True)

KEY_HEADER: Final = "Idempotency-Key"
JSON: Final = "application/json"
LINES: Final = "application/x-ndjson"
# Of a number in a query without a limit of its own.
_NUMBER_MAX: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class PathName:
    """A name in a path: its meaning, and a value that it may have."""

    says: str
    example: str


PATH_NAMES: Final = {
    "node": PathName("The name of a node.", "n9"),
    "entity": PathName("An entity: node:NAME, KIND:NAME@NODE, KIND:NAME.", "node:n1"),
    "token": PathName("The id of a token; it is not secret.", "t1"),
    "job": PathName("The number of a job.", "1"),
    "image": PathName("The name of an image, or its digest.", "b"),
    "revision": PathName("The revision of a write, from the history.", "1"),
}


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[Shape_co]):
    """A method of a path, and the `scope` that a token must allow; None: no token is needed.

    `gives` is the shape of the answer, of each item where it is a stream; `takes` that of the body.
    A list that is given as lines too, to clients that ask for them, has `lines`, the shape of each.
    `dry_scope` is enough instead of `scope` for `?dry_run=1`. A token that is limited to some
    entities is admitted where the path names one of them, or where the answer `narrows` itself to
    them. `headers` are those that the endpoint reads besides the token, `also` other statuses with
    the same answer, `problems` those of its refusals besides those of all endpoints. It reads an
    idempotency key if it is `keyed`; if it changes something and is not, `unkeyed` says why.
    """

    method: str
    path: str
    scope: Scope | None
    gives: type[Shape_co]
    query: type[Query] = Query
    takes: Any = None
    lines: Any = None
    dry_scope: Scope | None = None
    narrows: bool = False
    headers: tuple[str, ...] = ()
    status: HTTPStatus = HTTPStatus.OK
    also: tuple[HTTPStatus, ...] = ()
    problems: tuple[HTTPStatus, ...] = ()
    media_type: str = JSON
    keyed: bool = False
    unkeyed: str | None = None

    @property
    def example(self) -> str:
        """A request target that is sound: each name of the path and each required query has one.

        >>> Endpoint("GET", "/v1/jobs/{job}", Scope.READ, str).example
        '/v1/jobs/1'
        """
        path = self.path.format_map({name: one.example for name, one in PATH_NAMES.items()})
        asked = [f"{one.name}={one.example}" for one in self.queries if one.required]
        return path + ("?" + "&".join(asked) if asked else "")

    @property
    def queries(self) -> tuple["QueryName", ...]:
        """All names that the query may have."""
        return _query_names(self.query)


@dataclass(frozen=True, slots=True)
class QueryName:
    """One name of a query; `schema` is the form of its text."""

    name: str
    required: bool
    schema: dict[str, Any]

    @property
    def example(self) -> str:
        return str(self.schema.get("examples", ["1"])[0])

    def refusal(self, text: str) -> str | None:
        """The form to write instead of a text that lacks it; None: it has it."""
        if (choices := self.schema.get("enum")) is not None:
            return None if text in choices else f"one of {', '.join(choices)}"
        if self.schema["type"] != "integer":
            return None
        least, most = self.schema["minimum"], self.schema.get("maximum", _NUMBER_MAX)
        found = whole_number(text)
        if found is not None and least <= found <= most:
            return None
        return f"a whole number from {least}" + (f" to {most}" if most < _NUMBER_MAX else "")


@cache  # it is read with each request
def _query_names(query: type[Query]) -> tuple[QueryName, ...]:
    return tuple(map(_query_name, msgspec.structs.fields(query)))


def _query_name(field: msgspec.structs.FieldInfo) -> QueryName:
    schema = msgspec.json.schema(field.type)
    for one in schema.pop("anyOf", ()):
        schema |= one if one != {"type": "null"} else {}
    named = schema.pop("$defs", {})
    if "$ref" in schema:
        schema |= {"enum": named[schema.pop("$ref").rpartition("/")[2]]["enum"]}
    if "enum" in schema:
        schema["enum"] = [one for one in schema["enum"] if one is not None]
    return QueryName(field.encode_name, field.required, schema)
