"""A module that is never imported to its end, where it is to serve."""

import time
from pathlib import Path

while Path("/proc/self/comm").read_text().startswith("module"):
    time.sleep(1)
