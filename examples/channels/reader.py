"""Writes each entry that the ledger says into a file of its own: number, epoch, entry."""

import os
import sys
from pathlib import Path

from haptera.app.channels import ChannelMessage, Channels

folder = Path(sys.argv[1])
folder.mkdir(exist_ok=True)
who = ".".join(os.environ[f"HAPTERA_{one}"] for one in ("RANK", "PLACEMENT", "STARTS"))
with Channels.of_environment() as channels, (folder / who).open("w", encoding="ascii") as file:
    channels.start()
    for event in channels:
        if not isinstance(event, ChannelMessage):
            raise SystemExit(f"entries are missing: {event}")
        print(event.source_number, event.epoch, event.data.decode(), file=file, flush=True)
