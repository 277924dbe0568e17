"""Where a daemon's log goes: lines on standard error, for whatever keeps them."""

import logging
import sys


def log_to_stderr() -> None:
    """One line an entry: time for people, level, where from, text."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )
