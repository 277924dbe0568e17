"""The API as an OpenAPI 3.1 document, made of what each endpoint says of itself."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from http import HTTPStatus
from inspect import cleandoc
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

import haptera
from haptera.api.requests.endpoint import Caller, Handler
from haptera.rest.endpoint import JSON, KEY_HEADER, LINES, PATH_NAMES, Endpoint
from haptera.rest.endpoints import OPENAPI
from haptera.rest.problems import ProblemView
from haptera.runtime.reading_threads import in_reading_thread

_REF: Final = "#/components/schemas/{name}"
_PROBLEM: Final = "application/problem+json"
_PARAMETER = re.compile(r"\{(\w+)\}")
_ALWAYS: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.MISDIRECTED_REQUEST)
_WITH_SCOPE: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_WITH_KEY: Final = (
    HTTPStatus.CONFLICT,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INSUFFICIENT_STORAGE,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
)
_WITH_BODY: Final = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def served_openapi(served: Iterable[Handler]) -> Handler:
    """The endpoint of this document: made when it is first asked for, in a thread.

    It takes 50 ms, which a parent that starts does not have.
    """
    described = [*served]

    @cache
    def text() -> bytes:
        return msgspec.json.encode(document(described))

    async def answer(_request: Request, _caller: Caller) -> Response:
        """This document."""
        return Response(await in_reading_thread(text), media_type=JSON)

    return Handler(OPENAPI, answer)


def document(served: Iterable[Handler]) -> dict[str, Any]:
    """All of these, in the order of their paths."""
    ordered = sorted(served, key=lambda one: (one.endpoint.path, one.endpoint.method))
    shapes: list[Any] = [ProblemView]
    for one in ordered:
        about = one.endpoint
        typed = about.gives if about.media_type == JSON else None
        shapes += [shape for shape in (typed, about.takes, about.lines) if shape is not None]
    schemas, components = msgspec.json.schema_components(shapes, ref_template=_REF)
    by_shape = dict(zip(map(str, shapes), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in ordered:
        operation = _operation(one, by_shape)
        paths.setdefault(one.endpoint.path, {})[one.endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "haptera",
            "version": haptera.__version__,
            "description": "The API of a parent: the state of the cluster, and the desired state.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {name: _closed(components[name]) for name in sorted(components)},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(served: Handler, by_shape: dict[str, Any]) -> dict[str, Any]:
    said, one = cleandoc(served.answer.__doc__ or ""), served.endpoint
    summary, _, rest = said.partition("\n")
    operation: dict[str, Any] = {
        "operationId": f"{one.method.lower()}_{_identifier(one.path)}",
        "summary": summary,
        "parameters": list(_parameters(one)),
        "responses": _responses(one, by_shape),
        "security": [] if one.scope is None else [{"token": []}],
    }
    if rest.strip():
        operation["description"] = rest.strip()
    if one.scope is not None:
        operation["x-scope"] = one.scope.value
    if one.dry_scope is not None:
        operation["x-scope-of-dry-run"] = one.dry_scope.value
    if one.takes is not None:
        patched = ["application/merge-patch+json"] if one.method == "PATCH" else []
        schema = _closed(by_shape[str(one.takes)])
        operation["requestBody"] = {
            "required": True,
            "content": {one_type: {"schema": schema} for one_type in (JSON, *patched)},
        }
    return operation


def _parameters(one: Endpoint[Any]) -> Iterator[dict[str, Any]]:
    for name in _PARAMETER.findall(one.path):
        schema = {"type": "string", "minLength": 1}
        says = PATH_NAMES[name].says
        said = {"name": name, "in": "path", "required": True, "description": says}
        yield {**said, "schema": schema}
    for query in one.queries:
        said = {"name": query.name, "in": "query", "required": query.required}
        schema = {**query.schema}
        yield {**said, "description": schema.pop("description"), "schema": schema}
    if "If-Match" in one.headers:
        what = "Write only if it is unchanged: the ETag of an earlier answer, or *."
        said = {"name": "If-Match", "in": "header", "required": False, "description": what}
        yield {**said, "schema": {"type": "string"}}
    if one.keyed:
        what = "A key for this request: sent again with the same key, it is not executed again."
        said = {"name": KEY_HEADER, "in": "header", "required": False, "description": what}
        yield {**said, "schema": {"type": "string", "minLength": 1, "maxLength": 128}}


def _responses(one: Endpoint[Any], by_shape: dict[str, Any]) -> dict[str, Any]:
    typed = by_shape[str(one.gives)] if one.media_type == JSON else {"type": "string"}
    content = {one.media_type: {"schema": typed}}
    if one.lines is not None:
        content[LINES] = {
            "schema": {"type": "string", "description": "One item per line."},
            "x-line": by_shape[str(one.lines)],
        }
    good = (one.status, *one.also)
    problems = {
        *_ALWAYS,
        *one.problems,
        *(_WITH_SCOPE if one.scope is not None else ()),
        *(_WITH_BODY if one.takes is not None else ()),
        *(_WITH_KEY if one.keyed else ()),
    }
    refused = {"schema": by_shape[str(ProblemView)]}
    return {
        **{
            str(status.value): {"description": status.phrase, "content": content} for status in good
        },
        **{
            str(status.value): {"description": status.phrase, "content": {_PROBLEM: refused}}
            for status in sorted(problems)
        },
    }


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with nothing left open: an object has what is named, and nothing else."""
    if schema.get("type") == "object" and "properties" in schema:
        return {**schema, "additionalProperties": False}
    return schema


def _identifier(path: str) -> str:
    return "_".join(re.findall(r"\w+", path)) or "page"
