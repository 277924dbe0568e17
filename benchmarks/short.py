"""Each benchmark once, in its shortest form: that it still runs to its end, not how fast it is.

    python -m benchmarks.short [NAME ...]

One that needs root, a network namespace or what another run left is not among them.
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
WITHIN_S = 300
FORMS = {
    "api": ["1"],
    "cli": ["1", "200"],
    "convergence": ["1"],
    "detector": ["--nodes", "2", "--hours", "0.02"],
    "events": ["1"],
    "groups": ["1", "0"],
    "health": ["200", "3"],
    "hello_path": ["1"],
    "module_restart": ["1"],
    "module_scale": ["100"],
    "of_all": ["500"],
    "plans": ["1"],
    "queue": ["1000"],
    "refusals": ["1"],
    "rehearsal": ["50"],
    "restart": ["100"],
    "row_memory": ["500"],
    "selecting": ["1"],
    "sync": ["100"],
    "turns": ["500"],
}
# Parts of benchmarks, and what does not run anywhere or in minutes.
NOT_SHORT = {
    *("always_on", "children", "crowd", "explicit_graph", "parent_of_many", "planning", "short"),
    *("boot", "boot_share", "head_of_line", "page", "planner", "roll"),
}


def main(names: list[str]) -> int:
    failed = []
    for name in names or FORMS:
        began = time.monotonic()
        try:
            ran = subprocess.run(
                [sys.executable, "-m", f"benchmarks.{name}", *FORMS[name]],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=WITHIN_S,
            )
        except subprocess.TimeoutExpired:
            failed.append(name)
            print(f"{name} did not end within {WITHIN_S} s")
            continue
        print(
            f"{name:16} ended with {ran.returncode} in {time.monotonic() - began:.0f} s", flush=True
        )
        if ran.returncode != 0:
            failed.append(name)
            print(ran.stdout[-2000:], ran.stderr[-2000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
