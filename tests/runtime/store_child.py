"""Writes to a store for ever and prints each ticket once it is acknowledged; to be killed."""

import os
import queue
import random
import sys
from pathlib import Path

from haptera.model.changes import (
    Change,
    CloseIntent,
    Declare,
    OpenIntent,
    SetDesired,
    Undeclare,
    UnsetDesired,
)
from haptera.model.effects import Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Unwritten, Written
from haptera.model.intent import Intent
from haptera.runtime.store.store import Store

OUTSTANDING_MAX = 20
COUNTER = node_id("counter")


def write_number(ticket: int) -> Write:
    """The same write for the same ticket, in whichever process; its last change says which."""
    rng = random.Random(ticket)
    changes: list[Change] = [Declare(COUNTER, {}, "site")]
    for _ in range(rng.randrange(1, 6)):
        entity = EntityId("service", f"s{rng.randrange(4)}", f"n{rng.randrange(4)}")
        intent = f"i{rng.randrange(1_000_000)}-{ticket}-{len(changes)}"
        step = Intent(intent, entity, "service", "start", ticket, "boot")
        changes += rng.choice(
            [
                [Declare(entity, {"rack": str(ticket)}, "site")],
                [Undeclare(entity)],
                [Declare(entity, {}, "site"), SetDesired(entity, "port", ticket, "user:eve")],
                [UnsetDesired(entity, "port")],
                [OpenIntent(step)],
                [OpenIntent(step), CloseIntent(intent)],
            ]
        )
    return Write(ticket, (*changes, SetDesired(COUNTER, "ticket", ticket, "site")))


def main(path: Path, first: int) -> None:
    answers: queue.SimpleQueue[Written | Unwritten] = queue.SimpleQueue()
    store = Store.open(path, deliver=answers.put, wall_s=lambda: 0.0)
    outstanding = 0
    ticket = first
    while True:
        while outstanding < OUTSTANDING_MAX:
            store.submit(write_number(ticket))
            ticket, outstanding = ticket + 1, outstanding + 1
        answer = answers.get()
        assert isinstance(answer, Written), answer
        outstanding -= 1
        os.write(1, f"{answer.ticket} {answer.revision}\n".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
