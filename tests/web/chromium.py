"""Headless Chromium, driven by its own DevTools protocol over a pair of pipes."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from haptera.runtime import clock

# How long the browser may take to answer, or a page to become what is awaited.
WAIT_S_MAX = 60
NAMES = ("chromium", "chromium-browser", "google-chrome")
FOUND = next(filter(None, map(shutil.which, NAMES)), None)
CHROMIUM = (
    pytest.mark.net,
    pytest.mark.skipif(FOUND is None, reason="Chromium is not installed: apt install chromium"),
)

# No name is resolved and nothing is fetched but from loopback, whatever a page or the browser asks.
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # it refuses to run as root with one
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-breakpad",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.*, EXCLUDE ::1",
    "--proxy-server=direct://",
)

# The browser reads commands from descriptor 3 and writes answers to 4.
TAKE_PIPES = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
DESCRIPTORS_FROM = 10

# Resolves with what the condition says first that is something: now, or after a later change of the
# document or of what has the focus.
AWAIT = """
new Promise((found) => {
  const look = () => {
    const it = (() => (%s))();
    if (!it) return;
    watch.disconnect();
    removeEventListener('focusin', look);
    found(it);
  };
  const watch = new MutationObserver(look);
  watch.observe(document, {attributes: true, characterData: true, childList: true, subtree: true});
  addEventListener('focusin', look);
  look();
})
"""


class Page:
    """One page; what it asked for, what it was answered, what went wrong in it."""

    def __init__(self, reading, writing):
        self._reading = reading
        self._writing = writing
        self._buffer = b""
        self._number = 0
        self._session = None
        self.requests = []
        self.answers = []
        self.wrong = []
        self.loads = 0

    def open(self):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def go(self, url):
        answer = self.ask("Page.navigate", url=url)
        assert "errorText" not in answer, answer

    def evaluate(self, expression):
        """What a JavaScript expression comes to; of a promise, what it is resolved with."""
        answer = self.ask(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def await_(self, condition):
        """The first value of the condition that is something."""
        return self.evaluate(AWAIT % condition)

    def await_load(self, before):
        """Wait until a page was loaded since there were so many loads."""
        deadline = clock.now_ns() + WAIT_S_MAX * 1_000_000_000
        while self.loads <= before:
            self._take(self._next(deadline, "with a loaded page"))

    def screenshot(self, path):
        """A picture of what is in sight, written to this file."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))
        return path

    def ask(self, method, **parameters):
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        deadline = clock.now_ns() + WAIT_S_MAX * 1_000_000_000
        while True:
            one = self._next(deadline, method)
            if one.get("id") == number:
                assert "error" not in one, one
                return one["result"]
            self._take(one)

    def _take(self, event):
        parameters = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"])
            case "Network.responseReceived":
                self.answers.append(parameters["response"])
            case "Page.loadEventFired":
                self.loads += 1
            case "Runtime.exceptionThrown":
                self.wrong.append(parameters["exceptionDetails"])
            case "Log.entryAdded":
                self.wrong.append(parameters["entry"])

    def _next(self, deadline, what):
        while b"\0" not in self._buffer:
            left_s = (deadline - clock.now_ns()) / 1_000_000_000
            ready = left_s > 0 and select.select([self._reading], [], [], left_s)[0]
            assert ready, f"Chromium has not answered {what} within {WAIT_S_MAX} s"
            data = os.read(self._reading, 1 << 20)
            assert data, "Chromium is gone"
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)


@contextmanager
def browsing(folder, within=()):
    """A page in a browser of its own, with its files in this folder; no process of it stays.

    The folder is its home too. It is started by the command `within`, if there is one.
    """
    commands, answers = _pipe(), _pipe()
    with (folder / "chromium.log").open("w") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", TAKE_PIPES, str(commands[0]), str(answers[1])),
                *(*within, FOUND, *FLAGS, f"--user-data-dir={folder / 'profile'}"),
            ],
            env=os.environ | {"HOME": str(folder)},
            pass_fds=(commands[0], answers[1]),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    os.close(commands[0])
    os.close(answers[1])
    try:
        page = Page(answers[0], commands[1])
        page.open()
        yield page
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # the group has it and its helpers, no one else
        process.wait(WAIT_S_MAX)
        os.close(commands[1])
        os.close(answers[0])


def _pipe():
    """A pipe whose ends are none of the descriptors that the browser wants."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, DESCRIPTORS_FROM) for one in ends)
    for one in ends:
        os.close(one)
    return moved
