"""Inboxes: each message once and in order, and what is missing is told."""

from haptera.app.channel_events import ChannelMessage, Hole
from haptera.modules.replica.channels.inbox import Inbox, StoredMessage
from haptera.modules.replica.channels.outbox import OutputPosition


def test_messages_have_the_number_of_the_input_and_that_of_who_said_them() -> None:
    inbox = Inbox()
    said = [
        StoredMessage(1, b"a", "feed", 1, rank=0, position=OutputPosition(1, 2, 0, 1)),
        StoredMessage(2, b"b"),
        StoredMessage(3, b"c", "ledger", 1, epoch=4, position=OutputPosition(0, 0, 9, 1)),
    ]

    assert [event for one in said for event in inbox.stored(one)] == [
        ChannelMessage(1, "feed.0", 1 << 32 | 2, 1, 0, b"a"),
        ChannelMessage(2, "", 0, 0, 0, b"b"),
        ChannelMessage(3, "ledger", 0, 1, 4, b"c"),
    ]


def test_what_the_limits_of_a_stream_have_passed_is_told_as_a_hole() -> None:
    inbox = Inbox.after(1, {"feed": 4})

    assert list(inbox.stored(StoredMessage(5, b"x", "feed", 9))) == [
        Hole("", 2, 4),
        Hole("feed", 5, 8),
        ChannelMessage(5, "feed", 0, 9, 0, b"x"),
    ]


def test_what_was_heard_before_is_not_given_again() -> None:
    inbox = Inbox.after(5, {"feed": 9})

    assert list(inbox.stored(StoredMessage(5, b"x", "feed", 9))) == []
    assert list(inbox.stored(StoredMessage(6, b"x", "feed", 9))) == []
    assert list(inbox.stored(StoredMessage(7, b"y", "feed", 10))) == [
        ChannelMessage(7, "feed", 0, 10, 0, b"y")
    ]
