#!/usr/bin/env python3
"""A small platform of somebody else's: it boots and updates appliances, over an API of its own.

    PLATFORM_TOKEN=TOKEN platform.py HOST:PORT LOG

It is slow, answers only so many requests a second, and is wrong now and then. It knows nothing of
haptera, which drives it by the site file beside this file. What it is told to do is written to LOG.
"""

import json
import os
import sys
import threading
import time  # noqa: TID251 - a program of somebody else
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

BOOT_S, UPDATE_S = 0.5, 1.0
PAGE = 4
# What it sends now and then instead of an answer.
WRONG_EACH = 23
A_SECOND = 40
VERSIONS = ("1.0", "2.0")


class Platform:
    """All appliances, and the tasks that change them."""

    def __init__(self, log: str) -> None:
        self.lock = threading.Lock()
        self.log = log
        self.asked = 0
        self.second = (0, 0)
        self.bad: set[str] = set()
        self.tasks: dict[str, dict[str, str]] = {}
        self.appliances = {
            f"a{n}": {"id": f"a{n}", "state": "HALTED", "version": "1.0", "before": "1.0",
                      "fault": "", "rev": 1}
            for n in range(1, 9)
        }  # fmt: skip

    def note(self, *words: object) -> None:
        with open(self.log, "a", encoding="utf-8") as log:
            print(time.monotonic_ns(), *words, file=log, flush=True)

    def change(self, name: str, **values: str) -> None:
        with self.lock:
            one = self.appliances[name]
            one.update(values, rev=one["rev"] + 1)
            self.note(name, one["state"], one["version"])

    def begin(self, name: str, work) -> str:
        number = f"t{len(self.tasks) + 1}"
        task = self.tasks[number] = {"task": number, "phase": "running", "reason": ""}

        def run() -> None:
            reason = work(name)
            task.update(phase="failed" if reason else "done", reason=reason or "")

        threading.Thread(target=run, daemon=True).start()
        return number

    def boot(self, name: str) -> None:
        time.sleep(BOOT_S)
        self.change(name, state="SERVING")

    def update(self, name: str, version: str) -> str | None:
        one = self.appliances[name]
        self.change(name, state="UPDATING", before=one["version"])
        time.sleep(UPDATE_S)
        if version not in VERSIONS or name in self.bad:
            reason = f"image {version}: checksum of layer 3 is wrong"
            self.change(name, state="BROKEN", version=version, fault=reason)
            return reason
        self.change(name, state="SERVING", version=version, fault="")
        return None

    def roll_back(self, name: str) -> None:
        time.sleep(BOOT_S)
        self.change(name, state="SERVING", version=self.appliances[name]["before"])

    def busy(self) -> bool:
        with self.lock:
            now = int(time.monotonic())
            count = self.second[1] + 1 if self.second[0] == now else 1
            self.second = (now, count)
            return count > A_SECOND


class Handler(BaseHTTPRequestHandler):
    """One request: who asks, how often, and what for."""

    platform: Platform
    token: str

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        if not self.may():
            return
        if path.path == "/v1/appliances":
            at = int(parse_qs(path.query).get("from", ["0"])[0])
            every = [*self.platform.appliances.values()]
            more = f"/v1/appliances?from={at + PAGE}" if at + PAGE < len(every) else None
            self.answer(200, {"items": every[at : at + PAGE], "next": more})
        elif path.path.startswith("/v1/tasks/"):
            task = self.platform.tasks.get(path.path.rpartition("/")[2])
            self.answer(200 if task else 404, task or {"error": {"message": "no such task"}})
        elif (one := self.platform.appliances.get(self.name(path.path))) is not None:
            self.answer(200, one, {"ETag": f'"{one["rev"]}"'})
        else:
            self.answer(404, {"error": {"message": "no such appliance"}})

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size) or b"{}")
        if self.path == "/faults":  # how a person breaks it; not a part of its API
            self.platform.bad = set(body["bad"])
            self.answer(200, {})
            return
        if not self.may():
            return
        name, _, verb = self.path.removeprefix("/v1/appliances/").partition("/")
        one = self.platform.appliances.get(unquote(name))
        if one is None:
            self.answer(404, {"error": {"message": f"no such appliance: {unquote(name)}"}})
        elif self.headers.get("If-Match", f'"{one["rev"]}"') != f'"{one["rev"]}"':
            self.answer(412, {"error": {"message": "it has changed meanwhile"}})
        else:
            self.begin(verb, one["id"], body)

    def begin(self, verb: str, name: str, body: dict[str, str]) -> None:
        platform = self.platform
        platform.note(name, "asked", verb, body.get("version", ""))
        match verb:
            case "boot":
                number = platform.begin(name, platform.boot)
            case "halt":
                platform.change(name, state="HALTED")
                self.answer(204, None)
                return
            case "update":
                number = platform.begin(name, lambda one: platform.update(one, body["version"]))
            case "rollback":
                number = platform.begin(name, platform.roll_back)
            case _:
                self.answer(404, {"error": {"message": f"no verb {verb}"}})
                return
        self.answer(202, {"task": number}, {"Location": f"/v1/tasks/{number}"})

    def may(self) -> bool:
        if self.headers.get("Authorization") != f"Bearer {self.token}":
            self.answer(401, {"error": {"message": "who are you?"}})
            return False
        if self.platform.busy():
            self.answer(429, {"error": {"message": "not so fast"}}, {"Retry-After": "1"})
            return False
        self.platform.asked += 1
        if self.command == "GET" and self.platform.asked % WRONG_EACH == 0:
            self.answer(500, {"error": {"message": "database is locked"}})
            return False
        time.sleep(0.02)
        return True

    def name(self, path: str) -> str:
        return unquote(path.removeprefix("/v1/appliances/"))

    def answer(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for key, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    address, log = sys.argv[1:]
    host, _, port = address.rpartition(":")
    Handler.platform, Handler.token = Platform(log), os.environ["PLATFORM_TOKEN"]
    ThreadingHTTPServer((host, int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
