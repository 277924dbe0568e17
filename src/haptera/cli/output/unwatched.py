"""The verbs that have no --watch: why, and what to type instead."""

from collections.abc import Mapping, Sequence
from typing import Final

import click

_OPTION: Final = ("-w", "--watch")
# Why, and the verbs of which that holds.
_VERBS: Final[Mapping[str, Sequence[str]]] = {
    "it runs once; `haptera status --watch` shows the result": [
        *("apply", "claim", "image build", "image gc", "image import", "image rm"),
        *("module reload", "power", "promote", "retry", "revert", "set", "unset"),
    ],
    "a plan is a snapshot: `--save` it, and `haptera apply --plan` shows changes since": ["plan"],
    "a rehearsal is of one moment: run it again": ["rehearse apply", "rehearse roll"],
    "it is a snapshot; `haptera diff --watch FILE` shows the difference from a file": ["export"],
    "it reads local files, for which there are no events: run it again": [
        *("audit verify", "check", "health test", "import ansible", "import clustershell"),
        *("import layercake", "import warewulf", "minos show", "module lint", "secret list"),
    ],
    "its output never changes": ["completion", "health rules", "site schema"],
    "a drawing is a snapshot; `haptera chain --watch ENTITY` shows the steps left": ["graph"],
    "rules seldom say something else: run it again": ["health"],
    "it ends when the condition holds": ["wait"],
    "an image that was built does not change": ["image diff"],
    "`haptera get --watch image:NAME` shows one": ["image list", "image show"],
    "`haptera roll status --watch` shows the progress of rolls": [
        *("roll abort", "roll pause", "roll resume", "roll rm", "roll start", "roll timeline"),
        "roll undo",
    ],
    "it runs once": [
        *("doctor", "setup agent", "setup parent"),
        *("backup", "bmc check", "evict", "exec", "minos build", "module check", "module new"),
        "module test",
        *("override", "restore", "secret allow", "secret remove", "secret set"),
    ],
    "it runs once; `haptera token list` shows valid tokens": [
        *("token certify", "token make", "token revoke"),
    ],
    "there are no events for such machines: run it again": ["unclaimed"],
    "it runs once; `haptera freeze --watch` shows what stays frozen": ["thaw"],
    "`--wait` waits for the end; `haptera why job:N` shows the state": ["submit"],
    "`haptera get --watch job` shows jobs as they change": ["cancel", "jobs", "queue"],
    "it runs once; `haptera queue` shows the state of each node": ["drain", "hold", "resume"],
    "it ends with its command; `haptera get --watch node:NAME` shows whether a node is busy": [
        "job",
    ],
    "it ends with its command; `haptera get --watch lease` shows who leads": ["fence run"],
    "it ends with its command": ["fence check"],
    "it already prints each change: omit the option": ["watch"],
    "it asks no parent; `haptera get --watch module` shows running modules": ["module list"],
    "it already shows its cluster until it is stopped: omit the option": ["lab"],
    "it injects a fault: watch what follows with watch or why": ["lab break"],
    "it runs until it is stopped; `haptera status --watch` shows the cluster": [
        *("agent", "serve", "standby"),
    ],
}
UNWATCHED: Final = {verb: why for why, verbs in _VERBS.items() for verb in verbs}


def told(error: click.NoSuchOption) -> click.UsageError:
    """The error, with what to type instead where it is of a verb without --watch."""
    verb = "" if error.ctx is None else error.ctx.command_path.partition(" ")[2]
    if error.option_name not in _OPTION or verb not in UNWATCHED:
        return error
    return click.UsageError(f"{verb} has no --watch: {UNWATCHED[verb]}", error.ctx)
