"""A platform as a site would declare it, for tests, and what stands for it."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from haptera.kinds import KINDS
from haptera.modules.declared.exchange import ApiRequest, PlatformAnswer
from haptera.modules.declared.module import kind_served
from haptera.modules.declared.terms import Declaration

TERMS: dict[str, Any] = {
    "kind": "box",
    "kind_terms": {
        "variables": {"run": ["halted", "serving", "broken"], "current": "applied"},
        "desired": {"version": "text"},
        "serves": {"run": "serving"},
    },
    "http": {"url": "http://127.0.0.1:1/api", "per_second": 1000, "error": "error.message"},
    "lists": {"all": {"get": "/boxes", "items": "items", "name": "id", "next": "next"}},
    "looks": {
        "look_run": {
            "of": "run",
            "list": "all",
            "at": "state",
            "values": {"HALTED": "halted", "SERVING": "serving", "BROKEN": "broken"},
            "note": "fault",
        },
        "look_version": {
            "of": "current",
            "list": "all",
            "equals": {"version": "{version}", "fault": ""},
        },
    },
    "steps": {
        "boot": {
            "from": {"run": "halted"},
            "to": {"run": "serving"},
            "post": "/boxes/{name}/boot",
            "within_s": 10,
        },
        "update": {
            "from": {"current": "stale"},
            "to": {"current": "current"},
            "requires": {"run": "serving"},
            "put": "/boxes/{name}/version",
            "body": {"version": "{version}"},
            "task": {"state": "phase", "done": ["ok"], "failed": ["bad"], "error": "why"},
            "within_s": 10,
            "late_s": 1,
            "ends_with_call": True,
            "disruptive": True,
        },
        "roll_back": {
            "from": {"run": "broken"},
            "to": {"run": "serving"},
            "post": "/boxes/{name}/back",
            "within_s": 10,
        },
    },
}


def terms(**changed: Any) -> Declaration:
    return msgspec.convert({**TERMS, **changed}, Declaration)


BOX = kind_served(terms())
KINDS_WITH_BOX = {**KINDS, BOX.name: BOX}


def answer(data: object, status: int = 200, **headers: str) -> PlatformAnswer:
    return PlatformAnswer(status, headers, json.dumps(data).encode())


class FakePlatform:
    """One box, `bench`; `says` answers before it does, and `asked` are the requests."""

    def __init__(
        self, says: Callable[[ApiRequest], PlatformAnswer | None] = lambda _: None
    ) -> None:
        self.box = {"id": "bench", "state": "HALTED", "version": "1", "fault": ""}
        self.bad: set[str] = set()
        self.asked: list[str] = []
        self._says = says

    async def __call__(self, request: ApiRequest) -> PlatformAnswer:
        self.asked.append(f"{request.method} {request.path}")
        if (said := self._says(request)) is not None:
            return said
        match request.method, request.path.removeprefix("/api/boxes"):
            case "GET", "":
                return answer({"items": [self.box], "next": None})
            case "POST", "/bench/boot" | "/bench/back":
                self.box |= {"state": "SERVING", "version": "1"}
                return answer({})
            case "PUT", "/bench/version":
                version = json.loads(request.body or b"{}")["version"]
                bad = version in self.bad
                self.box |= {"version": version, "state": "BROKEN" if bad else "SERVING"}
                self.box["fault"] = "layer 3" if bad else ""
                return answer({}, 202, location=f"/api/boxes/tasks/{version}")
            case "GET", "/tasks/2":
                why = {"phase": "bad", "why": "layer 3 is wrong"}
                return answer(why if "2" in self.bad else {"phase": "ok"})
            case _:
                return answer({"error": {"message": f"what is {request.path}?"}}, 404)
