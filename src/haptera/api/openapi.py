"""The API as an OpenAPI 3.1 document, made of what each endpoint says of itself."""

import asyncio
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
from haptera.api.requests.endpoint import KEY_HEADER, Caller, Contract, Endpoint
from haptera.api.requests.lines import MEDIA_TYPE
from haptera.rest.problems import ProblemView

PATH: Final = "/v1/openapi.json"
_REF: Final = "#/components/schemas/{name}"
_PROBLEM: Final = "application/problem+json"
_PARAMETER = re.compile(r"\{(\w+)\}")
# What stands for a name in a path, for people and programs.
_NAMES: Final = {
    "node": "The name of a node.",
    "entity": "An entity: node:NAME, KIND:NAME@NODE, KIND:NAME.",
    "token": "The id of a token; it is not secret.",
    "job": "The number of a job.",
    "image": "The name of an image, or its digest.",
    "revision": "The revision of a write, from the history.",
}
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


def openapi_endpoint(served: Iterable[Endpoint]) -> Endpoint:
    """The endpoint that tells of all these: made when it is first asked for, in a thread.

    It takes 50 ms, which a parent that starts does not have.
    """
    told = [*served]

    @cache
    def text() -> bytes:
        return msgspec.json.encode(document(told))

    async def answer(_request: Request, _caller: Caller) -> Response:
        """This document."""
        return Response(await asyncio.to_thread(text), media_type="application/json")

    return Endpoint("GET", PATH, None, answer, Contract())


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """All of these, in the order of their paths."""
    ordered = sorted(endpoints, key=lambda one: (one.path, one.method))
    contracts = [one.contract for one in ordered]
    told = [shape for one in contracts for shape in (one.gives, one.takes, one.lines)]
    shapes = [ProblemView, *(shape for shape in told if shape is not None)]
    schemas, components = msgspec.json.schema_components(shapes, ref_template=_REF)
    by_shape = dict(zip(map(str, shapes), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in ordered:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, by_shape)
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


def _operation(one: Endpoint, by_shape: dict[str, Any]) -> dict[str, Any]:
    said = cleandoc(one.answer.__doc__ or "")
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
    if one.contract.takes is not None:
        patched = ["application/merge-patch+json"] if one.method == "PATCH" else []
        schema = _closed(by_shape[str(one.contract.takes)])
        operation["requestBody"] = {
            "required": True,
            "content": {
                one_type: {"schema": schema} for one_type in ("application/json", *patched)
            },
        }
    return operation


def _parameters(one: Endpoint) -> Iterator[dict[str, Any]]:
    for name in _PARAMETER.findall(one.path):
        schema = {"type": "string", "minLength": 1}
        said = {"name": name, "in": "path", "required": True, "description": _NAMES[name]}
        yield {**said, "schema": schema}
    for query in one.contract.queries:
        said = {"name": query.name, "in": "query", "required": query.required}
        yield {**said, "description": query.says, "schema": msgspec.json.schema(query.form)}
    if "If-Match" in one.contract.headers:
        what = "Write only if it is unchanged: the ETag of an earlier answer, or *."
        said = {"name": "If-Match", "in": "header", "required": False, "description": what}
        yield {**said, "schema": {"type": "string"}}
    if one.contract.keyed:
        what = "A key for this request: sent again with the same key, it is not executed again."
        said = {"name": KEY_HEADER, "in": "header", "required": False, "description": what}
        yield {**said, "schema": {"type": "string", "minLength": 1, "maxLength": 128}}


def _responses(one: Endpoint, by_shape: dict[str, Any]) -> dict[str, Any]:
    if one.contract.gives is None:
        content = {one.contract.media_type: {"schema": {"type": "string"}}}
    else:
        content = {"application/json": {"schema": by_shape[str(one.contract.gives)]}}
    if one.contract.lines is not None:
        content[MEDIA_TYPE] = {
            "schema": {"type": "string", "description": "One item per line."},
            "x-line": by_shape[str(one.contract.lines)],
        }
    good = (one.contract.status, *one.contract.also)
    problems = {
        *_ALWAYS,
        *one.contract.problems,
        *(_WITH_SCOPE if one.scope is not None else ()),
        *(_WITH_BODY if one.contract.takes is not None else ()),
        *(_WITH_KEY if one.contract.keyed else ()),
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
