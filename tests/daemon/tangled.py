"""A parent that knows one kind more than others: `python -m`, with its settings as JSON.

There is no way yet to hand a daemon a kind of one's own, so this program adds it to those that it
comes with, before anything is made of them.
"""

import sys
from typing import cast

import msgspec

from haptera.daemon.parent import run
from haptera.daemon.settings import Settings
from haptera.kinds import KINDS
from tests.core.tangle import KIND

if __name__ == "__main__":
    cast("dict[str, object]", KINDS)[KIND.name] = KIND
    run(msgspec.json.decode(sys.argv[1], type=Settings))
