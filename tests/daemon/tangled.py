"""A parent by its settings alone: `python -m`, with them as JSON."""

import sys

import msgspec

from haptera.daemon.parent.parent import run
from haptera.daemon.settings import ParentSettings

if __name__ == "__main__":
    run(msgspec.json.decode(sys.argv[1], type=ParentSettings))
