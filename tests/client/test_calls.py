"""Each call beside the endpoint that is declared for it: what it sends is what that one reads."""

import inspect
import re
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from starlette.requests import Request

from haptera.api.requests.endpoint import read_query
from haptera.client import calls, node_calls, sample_calls
from haptera.client.call import ApiCall, call
from haptera.model.news import News
from haptera.model.token_scope import Scope
from haptera.queue.job import JobState, Size
from haptera.rest import endpoints
from haptera.rest.endpoints import ENDPOINTS
from haptera.rest.jobs import SubmitBody, SubmitSpec
from haptera.rest.readings import ReadingBody
from haptera.rest.rolls import RollBody
from haptera.rest.schemas import CertificateBody, EntityPatch, SiteBody, SiteFile

# A value of each type that calls take.
VALUES: dict[Any, Any] = {
    str: "n1",
    int: 5,
    bool: True,
    bytes: b"x",
    Scope: Scope.READ,
    JobState: JobState.RUNNING,
    Iterable[str]: ["node"],
    Iterable[News]: [News.GONE],
    Iterable[EntityPatch]: [EntityPatch("node:n1", {"power": "on"})],
    Mapping[str, str | int | None]: {"power": "on", "kernel": None},
    Mapping[str, str | None]: {"rack": "1"},
    SiteBody: SiteBody([SiteFile("site.yaml", "cluster: quick\n")], {"x": "1"}),
    SubmitBody: SubmitBody(SubmitSpec(("true",), Size(1, 512)), key="k"),
    RollBody: RollBody("debian-b", "system:*"),
    Iterable[ReadingBody]: [ReadingBody("node:n1", "power", "on", 0)],
    CertificateBody: CertificateBody("eve", Scope.READ, 60, "a request"),
}
# Where a text is of a sort of its own.
TEXTS = {"follower": "standby", "digest": "0123456789ab", "reason": "fans"}


def value(name: str, form: Any) -> Any:
    if get_origin(form) is UnionType:
        [form] = [one for one in get_args(form) if one is not NoneType]
    return TEXTS.get(name, VALUES[form])


def made(function: Any) -> ApiCall[Any]:
    """A call with all that it may have."""
    hints = get_type_hints(function)
    positional, named = [], {}
    for name, one in inspect.signature(function).parameters.items():
        if one.kind is one.KEYWORD_ONLY:
            named[name] = value(name, hints[name])
        else:
            positional.append(value(name, hints[name]))
    return function(*positional, **named)


CALLS = {
    f"{file.__name__}.{name}": made(one)
    for file in (calls, node_calls, sample_calls)
    for name, one in inspect.getmembers(file, inspect.isfunction)
    if one.__module__ == file.__name__
}


def answering(one: ApiCall[Any]) -> Any:
    """The endpoint that answers a call."""
    [found] = [
        each
        for each in ENDPOINTS
        if each.method == one.method
        and re.fullmatch(re.sub(r"{\w+}", "[^/]+", each.path), one.path)
    ]
    return found


def test_whatever_the_api_answers_there_is_a_call_for() -> None:
    # Figures are for Prometheus, the description is for those who have no client.
    bare = {endpoints.METRICS, endpoints.READINGS, endpoints.OPENAPI}
    assert {answering(one) for one in CALLS.values()} == {*ENDPOINTS} - bare


@pytest.mark.parametrize("name", CALLS)
def test_a_call_sends_what_its_endpoint_reads(name: str) -> None:
    one = CALLS[name]
    endpoint = answering(one)
    read_query(
        Request({"type": "http", "query_string": one.target.partition("?")[2].encode()}),
        endpoint.query,
    )
    for query in endpoint.queries:
        assert query.name not in one.query or query.refusal(one.query[query.name]) is None
        assert not query.required or query.name in one.query
    assert set(one.headers) <= set(endpoint.headers)
    assert (one.body is None) == (endpoint.takes is None)
    if endpoint.takes is not None:
        msgspec.json.decode(msgspec.json.encode(one.body), type=endpoint.takes)
    # A view may be asked for without what was not asked for with it.
    assert issubclass(endpoint.gives, one.gives)


def test_a_call_cannot_send_what_its_endpoint_does_not_read() -> None:
    with pytest.raises(ValueError, match="has no colour in its query"):
        call(endpoints.SUMMARY, colour="red")


def test_only_what_changes_nothing_is_repeatable() -> None:
    assert {one.method for one in CALLS.values() if one.repeatable} == {"GET"}


def test_a_name_cannot_leave_its_place_in_the_path() -> None:
    assert calls.entity("node:n1/../../tokens?x#y").target == (
        "/v1/entities/node:n1%2F..%2F..%2Ftokens%3Fx%23y"
    )
