"""Values that nobody should send, for each field of each body of the API, and of each kind."""

import random
import string
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from haptera.kinds import KINDS
from haptera.rest.exec import ExecBody
from haptera.rest.jobs import SubmitBody
from haptera.rest.schemas import FreezeBody, TokenBody
from haptera.site.model.rules import BUDGETS, POLICIES

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

# Each body as it is right: then one field of it is not.
_SPEC: Final = {"command": ["true"], "size": {"cpus": 1, "memory_mb": 64}}
BODIES: Final[Mapping[str, tuple[Any, dict[str, Any]]]] = MappingProxyType(
    {
        "/v1/jobs": (SubmitBody, {"spec": _SPEC}),
        "/v1/jobs?": (SubmitBody, {"spec": _SPEC | {"backend": "near"}}),
        "/v1/freezes": (FreezeBody, {"selector": "n3", "reason": "no", "for_s": 1}),
        "/v1/tokens": (TokenBody, {"name": "eve", "scope": "read", "for_s": 1}),
        "/v1/entities/node:n2/exec": (ExecBody, {"words": ["true"], "within_s": 1}),
    }
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

    def all_of(self, kind: Any, each: int) -> Iterator[Any]:
        """What a field of this type may be sent: all that is known to hurt, and so many others."""
        match kind:
            case msgspec.inspect.Metadata(type=inner):
                yield from self.all_of(inner, each)
            case msgspec.inspect.UnionType(types=types):
                for one in types:
                    yield from self.all_of(one, each)
            case msgspec.inspect.IntType():
                yield from NUMBERS
            case (
                msgspec.inspect.VarTupleType(item_type=item)
                | msgspec.inspect.ListType(item_type=item)
            ):
                yield from ([one] for one in self.all_of(item, each))
            case msgspec.inspect.StrType():
                yield from WHOLE
                yield from (self.text() for _ in range(each))
            case _:
                yield self.value()

    def varied(self, shape: Any, right: dict[str, Any], each: int) -> Iterator[dict[str, Any]]:
        """A body that is right, with one field at a time that is not, on all levels."""
        for field in shape.fields:
            name, kind = field.encode_name, field.type
            if isinstance(kind, msgspec.inspect.StructType):
                for inner in self.varied(kind, right[name], each):
                    yield right | {name: inner}
                continue
            for value in self.all_of(kind, each):
                yield right | {name: value}


def rules(values: Values, each: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The section of a site file and a rule in it, `each` of every key."""
    for section, form in (("policies", POLICIES), ("budgets", BUDGETS)):
        whole = dict.fromkeys(form.needed, "node")
        for name in form.keys:
            for _ in range(each):
                yield section, whole | {name: values.value()}


def requests(values: Values, each: int, there: dict[str, str]) -> Iterator[tuple[str, str, Any]]:
    """Method, path and body, `each` of every field; `there` has an entity of each kind by name."""
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
    for path, (shape, right) in BODIES.items():
        for body in values.varied(msgspec.inspect.type_info(shape), right, each):
            yield "POST", path, body
