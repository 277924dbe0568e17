"""Enters each number that it hears: says how many entries there are, and the sum of all of them."""

import json

from haptera.app.channels import ChannelMessage, Channels, StateWanted

with Channels.of_environment() as channels:
    start = channels.start()
    entries, total = json.loads(start.state or b"[0, 0]")
    channels.offer_state()
    for event in channels:
        match event:
            case ChannelMessage(data=data):
                entries, total = entries + 1, total + int(data)
                channels.emit(b"%d %s %d" % (entries, data, total))
            case StateWanted():
                channels.supply(json.dumps([entries, total]).encode())
            case hole:
                raise SystemExit(f"the ledger would be wrong: {hole}")
