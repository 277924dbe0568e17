"""`python -m tests.liars.parent DIRECTORY SITE ADDRESS`: a parent that knows our modules too."""

import sys
from pathlib import Path
from typing import cast

from haptera.daemon.serve import serve
from haptera.modules import BUNDLED
from tests.liars.modules import WAYS

if __name__ == "__main__":
    cast(dict[str, str], BUNDLED).update({way: f"tests.liars.modules:{way}" for way in WAYS})
    serve(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
