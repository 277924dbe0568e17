"""Values that nobody should send, for each field of each endpoint, each kind, and of site files."""

import json
import random
import string
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote, urlencode

from msgspec import inspect

from haptera.kinds import KINDS
from haptera.rest import endpoints
from haptera.rest.endpoint import JSON, LINES, PATH_NAMES, Endpoint

# What parsers read: node-sets, selectors, sizes, limits, durations, paths, JSON.
SYNTAX: Final = "[]{}()*?@:;,.-=+!/%~^$&|<>'\"\\ #0123456789"
ODD: Final = "\0\x07\x1b\n\t\r\x7f\x85\u2028\u202e\ud800\udfff\ufeff\U0001f5a5é日"
WHOLE: Final = (
    "",
    " ",
    "a\0b",
    "-1",
    "0",
    "9" * 30,
    "../../etc/passwd",
    "/dev/stdin",
    "*",
    "@*",
    "rank 63",
    "n[1-999999999]",
    "n[1-9]" * 30,
    "9" * 5_000,
    "²",
    '{"' * 200,
    "(" * 400,
    "a" * 5_000,
    "a" * 2**20,
    "\U0001f5a5" * 60,
)
NUMBERS: Final = (0, 1, -1, 63, 2**31, 2**53, 2**63 - 1, -(2**63), 2**64, 10**30)
# Parts of values that are read: what is nearly right comes further.
NEAR: Final = (
    *("small: 1 cpus, 512 MB, price 1", "memory 512MB, cpu 150%", "sentinel beat 30s"),
    *("http :8080/health", "command true", "tcp 22", "rack, pdu", "n[1-2]", "slurm", "local"),
    *("lowest", "plug-in", "/etc/hosts", "node:n1 and rack=1", "true", "machines", "300s"),
    *('{"grace_s": 1}', "labnode.switch_on", "12:34:56:78:9a:bc", "127.0.0.1", "50%"),
)

# What is longer is no request.
QUERY_CHARS_MAX: Final = 1_000
# What is known of the names in a path: something that is there, or that nothing is lost with.
NAMED: Final = MappingProxyType(
    {name: one.example for name, one in PATH_NAMES.items()}
    | {"entity": "node:n2", "revision": "999999"}
)
_SPEC: Final = {
    "command": ["true"],
    "size": {"cpus": 1, "memory_mb": 64},
    "time_limit_s": 60,
    "retry": "never",
    "user": "nobody",
}
_IN_IMAGE: Final = {
    "image": "debian",
    "folder": "/",
    "mounts": [{"source": "/tmp", "target": "/mnt", "writable": False}],
    "devices": ["vendor.com/gpu=0"],
}
_JOB: Final = {"name": "a", "priority": 0, "count": 1, "key": "k"}
# It is of no cluster here, so that it is read and then refused.
_ELSEWHERE: Final = {
    "files": [{"name": "site.yaml", "text": "cluster: elsewhere", "included": False}],
    "constants": {"a": "b"},
    "if_revision": 1,
}
_PATCH: Final = {"entity": "node:n2", "desired": {"agent": "up"}, "attributes": {"rack": "1"}}
_TOKEN: Final = {"name": "eve", "scope": "read", "for_s": 1, "within": "n1"}
_ROLL: Final = {
    "image": "debian",
    "select": "n2",
    "name": "new",
    "canary": 1,
    "unavailable": "10%",
    "on_failure": "give-back",
    "health": "true",
    "deadline_s": 60,
}
_READING: Final = {
    "entity": "node:n2",
    "variable": "busy",
    "value": "free",
    "age_ms": 1,
    "note": "seen",
}
_OVERFLOW: Final = {"user": None, "overflow": [{"backend": "far", "after_s": 1}]}
# Of each endpoint that takes a body, some that are right: together they have each field.
RIGHT: Final[Mapping[Endpoint[Any], tuple[Any, ...]]] = MappingProxyType(
    {
        endpoints.SUBMIT: (
            {"spec": _SPEC | {"backend": "near"}, **_JOB},
            {"spec": _SPEC | _IN_IMAGE, **_JOB},
            {"spec": _SPEC | _OVERFLOW, **_JOB},
        ),
        endpoints.PRIORITIZE: ({"priority": 1},),
        endpoints.DESIRE: ({"agent": "up"},),
        endpoints.DESCRIBE: ({"rack": "1"},),
        endpoints.EXECUTE: ({"words": ["true"], "stdin": "", "within_s": 1},),
        endpoints.BULK: ({"patches": [_PATCH | {"if_match": "1"}], "all_or_nothing": True},),
        endpoints.APPLY: (_ELSEWHERE,),
        endpoints.DIFF: (_ELSEWHERE,),
        endpoints.BEGIN_ROLL: (_ROLL,),
        endpoints.FREEZE: ({"selector": "n3", "reason": "no", "for_s": 1, "even_if_none": True},),
        endpoints.MAKE_TOKEN: (_TOKEN,),
        endpoints.CERTIFY: (_TOKEN | {"request": "-----BEGIN"},),
        endpoints.REPORT: ({"report": ""},),
        endpoints.OBSERVE: ({"source": "monitor", "readings": [_READING]},),
        endpoints.CLAIM: ({"mac": "12:34:56:78:9a:bc"},),
    }
)
# Of what is no value of any field.
SHAPES: Final = (
    None,
    [],
    {},
    True,
    1.5,
    float("nan"),
    [[]],
    {"": {}},
    json.loads("[" * 500 + "]" * 500),
)


class Values:
    """Drawn with a seed: the same each time."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def text(self) -> str:
        rng = self.rng
        match rng.randrange(5):
            case 0:
                return rng.choice(WHOLE)
            case 1:
                return "".join(rng.choices(SYNTAX + string.ascii_letters, k=rng.randrange(40)))
            case 2:
                return rng.choice(NEAR)
            case _:
                word = list(rng.choice(NEAR))
                for _ in range(rng.randrange(1, 3)):
                    at = rng.randrange(len(word) + 1)
                    word[at : at + rng.randrange(2)] = rng.choice(ODD + SYNTAX)
                return "".join(word)

    def value(self) -> str | int:
        return self.rng.choice(NUMBERS) if self.rng.random() < 0.3 else self.text()

    def varied(self, kind: Any, right: Any, each: int) -> Iterator[Any]:
        """A right body with any value at one place of it."""
        match kind:
            case inspect.Metadata(type=inner):
                yield from self.varied(inner, right, each)
            case inspect.UnionType(types=types):
                for one in types:
                    yield from self.varied(one, right, each)
            case inspect.StructType(fields=fields) if isinstance(right, dict):
                yield from SHAPES
                named = {one.encode_name: one.type for one in fields}
                for name, content in right.items():
                    yield from (
                        right | {name: one} for one in self.varied(named[name], content, each)
                    )
            case inspect.DictType() if isinstance(right, dict):
                yield from self._mappings(kind, right, each)
            case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
                yield [*right, *right] * 1_000
                yield from ([one] for one in self.varied(item, right[0], each))
            case _:
                yield from self._leaves(kind, each)

    def _mappings(self, kind: inspect.DictType, right: dict[str, Any], each: int) -> Iterator[Any]:
        for name, content in right.items():
            yield from ({str(one): content} for one in self.varied(kind.key_type, name, each))
            yield from ({name: one} for one in self.varied(kind.value_type, content, each))

    def _leaves(self, kind: Any, each: int) -> Iterator[Any]:
        match kind:
            case inspect.StrType():
                yield from (*WHOLE, *SHAPES)
                yield from (self.text() for _ in range(each))
            case inspect.IntType():
                yield from (*NUMBERS, *SHAPES)
            case inspect.BytesType() | inspect.EnumType() | inspect.BoolType():
                yield from (self.value() for _ in range(each))
            case inspect.NoneType():
                pass
            case _:
                raise AssertionError(f"say here what a field of {kind} may be sent")


def lacking(kind: Any, right: Sequence[Any], at: str) -> Iterator[str]:
    """The fields of a shape that none of these has, each with its place."""
    match kind:
        case inspect.Metadata(type=inner):
            yield from lacking(inner, right, at)
        case inspect.UnionType(types=types):
            for one in types:
                yield from lacking(one, right, at)
        case inspect.StructType(fields=fields):
            found = [one for one in right if isinstance(one, dict)]
            for field in fields:
                values = [one[field.encode_name] for one in found if field.encode_name in one]
                place = f"{at}.{field.encode_name}"
                yield from lacking(field.type, values, place) if values else (place,)
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            yield from lacking(item, [one for many in right for one in many], f"{at}[]")
        case inspect.DictType(value_type=value):
            yield from lacking(value, [one for many in right for one in many.values()], f"{at}[]")
        case _:
            if not right:
                yield at


def patches(values: Values, each: int, there: Mapping[str, str]) -> Iterator[tuple[str, str, Any]]:
    """Method, path and body, `each` of every field of every kind, whose entities are `there`."""
    for kind, entity in there.items():
        own = KINDS[kind]
        # What switches a machine, or what runs on it, is meant to do so.
        desired = [one.name for one in (*own.plain, *own.variables) if one.name != "power"]
        for _ in range(each):
            for name in desired:
                body = {name: values.value()}
                yield "PATCH", f"/v1/entities/{entity}/desired?take=1", body
            for attribute in own.attributes:
                body = {attribute.name: values.text()}
                yield "PATCH", f"/v1/entities/{entity}/attributes?take=1", body


def requests(values: Values, each: int) -> Iterator[tuple[str, str, Any]]:
    """Method, path and body, with any value for each name, query and field of each endpoint."""
    for one in endpoints.ENDPOINTS:
        if one.media_type not in (JSON, LINES):
            continue  # The stream of events, which has no end, and pages for programs.
        for target in _targets(one, values, each):
            yield one.method, target, RIGHT[one][0] if one in RIGHT else None
        for right in RIGHT.get(one, ()):
            for body in values.varied(inspect.type_info(one.takes), right, each):
                yield one.method, _target(one, {}, {}), body


def _targets(one: Endpoint[Any], values: Values, each: int) -> Iterator[str]:
    for _ in range(each):
        for name in NAMED:
            if f"{{{name}}}" in one.path:
                # In one piece: what has a slash is another path.
                text = values.text()[:QUERY_CHARS_MAX].replace("/", "")
                yield _target(one, {name: text or "?"}, {})
        for asked in one.queries:
            yield _target(one, {}, {asked.name: str(values.value())[:QUERY_CHARS_MAX]})


def _target(one: Endpoint[Any], names: dict[str, str], queries: dict[str, str]) -> str:
    """A path of an endpoint, whose query has what it needs besides these."""
    asked = {each.name: each.example for each in one.queries if each.required} | queries
    written = {name: quote(text, "", errors="surrogatepass") for name, text in names.items()}
    path = one.path.format_map(NAMED | written)
    return f"{path}?{urlencode(asked, errors='surrogatepass')}" if asked else path


# In the schema of site files, a name for each that may be any.
KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "nodes": "n[1-2]",
        "desired": "n2",
        "services": "web",
        "entities": "rack:some",
        "^module:": "module:service",
        "^(service:)?[A-Za-z0-9._-]+@": "web@n2",
    }
)


def places(
    schema: Any, whole: Any, at: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Where a site file may say something: each key, and the first item of each list."""
    if "$ref" in schema:
        yield from places(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole, at)
    inner = [(one, key) for key, one in schema.get("properties", {}).items()]
    for pattern, one in schema.get("patternProperties", {}).items():
        inner.append((one, KEYS.get(pattern, f"{pattern.strip('^:')}:some")))
    if isinstance(more := schema.get("additionalProperties"), dict):
        inner.append((more, KEYS.get(str(at[-1]) if at else "", "some")))
    if "items" in schema:
        inner.append((schema["items"], 0))
    for one, key in inner:
        yield (*at, key)
        yield from places(one, whole, (*at, key))
    for one in schema.get("anyOf", ()):
        yield from places(one, whole, at)


def placed(site: Any, at: tuple[str | int, ...], value: Any) -> Any:
    """A site with this value at this place of it."""
    if not at:
        return value
    if at[0] == 0:
        return [placed({}, at[1:], value)]
    known = site if isinstance(site, dict) else {}
    return known | {at[0]: placed(known.get(at[0], {}), at[1:], value)}
