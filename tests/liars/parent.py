"""`python -m tests.liars.parent DIRECTORY SITE ADDRESS`: a parent, as `haptera serve` has it."""

import sys
from pathlib import Path

from haptera.daemon.parent.serve import serve

if __name__ == "__main__":
    serve(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
