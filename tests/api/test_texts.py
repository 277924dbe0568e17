"""Texts of requests: each has a sort, which says what may be in it, and is refused otherwise."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from haptera.kinds.node import NodeWork
from haptera.model.text import SORTS
from haptera.queue.duty import Duty
from haptera.queue.entry import Submission
from haptera.queue.job import JobSpec, Size
from haptera.rest.endpoints import ENDPOINTS
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend
from tests.api.job_desk import NOW

ONE = Submission(owner="user:ada", name="sum", spec=JobSpec(("true",), Size(1, 64)))
SPEC = {"command": ["true"], "size": {"cpus": 1, "memory_mb": 64}}
TOKEN = {"name": "eve", "scope": "read", "for_s": 60}


def texts(kind: Any, at: str) -> Iterator[tuple[str, Any]]:
    """Each text of a shape, with its place."""
    match kind:
        case msgspec.inspect.StrType():
            yield at, kind
        case msgspec.inspect.Metadata(type=inner):
            yield from texts(inner, at)
        case msgspec.inspect.StructType(fields=fields):
            for field in fields:
                yield from texts(field.type, f"{at}.{field.name}")
        case msgspec.inspect.DictType(key_type=key, value_type=value):
            yield from texts(key, f"{at}.keys")
            yield from texts(value, f"{at}.values")
        case msgspec.inspect.UnionType(types=types) | msgspec.inspect.TupleType(item_types=types):
            for one in types:
                yield from texts(one, at)
        case _:
            if (item := getattr(kind, "item_type", None)) is not None:
                yield from texts(item, f"{at}[]")


def taken() -> Iterator[tuple[str, Any]]:
    for one in ENDPOINTS:
        if one.takes is not None:
            shape = msgspec.inspect.type_info(one.takes)
            yield from texts(shape, f"{one.method} {one.path} ")


def test_each_text_of_each_body_is_of_a_sort_and_has_a_limit() -> None:
    found = dict(taken())

    assert len(found) > 30
    assert {at for at, one in found.items() if one.pattern not in SORTS} == set()
    assert {
        at for at, one in found.items() if not one.max_length and "{" not in one.pattern
    } == set()


@pytest.mark.parametrize(
    ("method", "path", "body", "what"),
    [
        ("POST", "/v1/jobs", {"spec": SPEC | {"command": ["a\0b"]}}, "U+0000"),
        ("POST", "/v1/jobs", {"spec": SPEC | {"user": "eve\n"}}, "the name of an account"),
        ("POST", "/v1/jobs", {"spec": SPEC | {"backend": "a\x1b"}}, "in one line"),
        ("POST", "/v1/jobs", {"spec": SPEC, "name": "a\x07"}, "in one line"),
        ("POST", "/v1/jobs", {"spec": SPEC, "name": "a\n"}, "in one line"),
        ("POST", "/v1/jobs", {"spec": SPEC, "name": "a\u202eb"}, "in one line"),
        ("POST", "/v1/jobs", {"spec": SPEC, "key": "a\0"}, "in one line"),
        ("POST", "/v1/tokens", TOKEN | {"within": "n1\0"}, "U+0000"),
        ("POST", "/v1/entities/node:n1/exec", {"words": ["a\0"]}, "U+0000"),
        ("PATCH", "/v1/entities/node:n1/desired", {"power\0": "on"}, "in one line"),
        ("PATCH", "/v1/entities/node:n1/desired", {"power": "on\0"}, "U+0000"),
        ("DELETE", "/v1/jobs/1?why=%1b", None, "U+001B"),
        ("DELETE", "/v1/jobs/1?why=a%0ab", None, "several lines"),
        ("GET", "/v1/jobs?select=job:*%00", None, "U+0000"),
    ],
)
def test_a_text_that_is_none_of_its_sort_is_refused_in_words(
    method: str, path: str, body: Any, what: str
) -> None:
    backend = FakeBackend()
    backend.jobs.queue.submit(ONE, NOW)
    backend.jobs.queue.set_duty("n1", Duty(NodeWork.HELD, "a disk", "user:eve"))
    app = app_of(backend)

    answer = ask(app, method, path, token="admin-token", body=b"" if body is None else body)

    assert answer.status == 400
    assert what in answer.json["what"]
    assert "^" not in answer.json["what"], "no regular expression"
