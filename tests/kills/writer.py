"""Writes desired state over the API without pause, and notes what was acknowledged."""

import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ANSWER_WITHIN_S = 60
PAUSE_S = 0.01
# Of so many writes one makes its node's agent replace the web server, and one a service that does
# nothing; all others change nothing on a node.
WEB_EVERY, BEAT_EVERY = 60, 3
PORT_MIN = 9001


class Api:
    """The parent's API, as a plain client sees it: one connection, opened again when it breaks."""

    def __init__(self, client_file: Path) -> None:
        client = json.loads(client_file.read_text())
        self._headers = {"Authorization": f"Bearer {client['token']}"}
        self._connection = HTTPConnection(urlsplit(client["url"]).netloc, timeout=ANSWER_WITHIN_S)

    def close(self) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, str, Any] | None:
        """Status, ETag and body; None where no answer came, whatever came of the request."""
        data = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, path, data, self._headers)
            response = self._connection.getresponse()
            answer = response.status, response.headers.get("ETag", ""), json.load(response)
        except (OSError, HTTPException, ValueError):
            self._connection.close()
            return None
        return answer


class Writer:
    """One thread that writes; `acknowledged` and `unanswered` count, `refused` holds answers."""

    def __init__(self, api: Api, file: Path, nodes: Sequence[str], seed: int) -> None:
        self._api = api
        self._file = file
        self._nodes = nodes
        self._rng = random.Random(seed)
        self._stopped = threading.Event()
        self.acknowledged = self.unanswered = 0
        self.refused: list[Any] = []

    def __str__(self) -> str:
        return f"{self.acknowledged} writes acknowledged, {self.unanswered} unanswered"

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def _run(self) -> None:
        with self._file.open("a", buffering=1) as file:
            count = 0
            while not self._stopped.is_set():
                count += 1
                node = self._rng.choice(self._nodes)
                if count % WEB_EVERY == 0:
                    self._write(file, f"service:web@{node}", PORT_MIN + count // WEB_EVERY)
                elif count % BEAT_EVERY == 0:
                    self._write(file, f"service:beat@{node}", count)
                else:
                    self._write(file, f"service:note@{node}", count)
                time.sleep(PAUSE_S)

    def _write(self, file: Any, entity: str, value: int) -> None:
        file.write(json.dumps({"entity": entity, "sent": value}) + "\n")
        answer = self._api.ask("PATCH", f"/v1/entities/{entity}/desired", {"port": value})
        if answer is None:
            self.unanswered += 1
            return
        status, tag, body = answer
        if status != 200:
            self.refused.append(body)
            return
        epoch, _, revision = tag.strip('"').partition(".")
        row = {"entity": entity, "acked": value, "epoch": int(epoch), "revision": int(revision)}
        file.write(json.dumps(row) + "\n")
        self.acknowledged += 1
