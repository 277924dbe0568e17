"""The verbs that have no --watch: why, and what to type instead."""

from typing import Final

import click

_OPTION: Final = ("-w", "--watch")
_ONCE: Final = "it runs once; `haptera status --watch` shows the result"
_FILES: Final = "it reads local files, for which there are no events: run it again"
_TOKEN: Final = "it runs once; `haptera token list` shows valid tokens"
_IMAGES: Final = "`haptera get --watch image:NAME` shows one"
_QUEUE: Final = "there are no events for jobs: run it again"
_DUTY: Final = "it runs once; `haptera queue` shows the state of each node"
_ROLLS: Final = "`haptera roll status --watch` shows the progress of rolls"
_FIXED: Final = "its output never changes"
_RUNS: Final = "it runs until it is stopped; `haptera status --watch` shows the cluster"

UNWATCHED: Final = {
    "apply": _ONCE,
    "plan": "a plan is a snapshot: `--save` it, and `haptera apply --plan` shows changes since",
    "export": "it is a snapshot; `haptera diff --watch FILE` shows the difference from a file",
    "import ansible": _FILES,
    "import clustershell": _FILES,
    "import layercake": _FILES,
    "import warewulf": _FILES,
    "site check": _FILES,
    "site schema": _FIXED,
    "graph": "a drawing is a snapshot; `haptera chain --watch ENTITY` shows the steps left",
    "wait": "it ends when the condition holds",
    "set": _ONCE,
    "power": _ONCE,
    "unset": _ONCE,
    "retry": _ONCE,
    "revert": _ONCE,
    "image build": _ONCE,
    "image diff": "an image that was built does not change",
    "image gc": _ONCE,
    "image import": _ONCE,
    "image rm": _ONCE,
    "image list": _IMAGES,
    "image show": _IMAGES,
    "roll timeline": _ROLLS,
    "roll start": _ROLLS,
    "roll pause": _ROLLS,
    "roll resume": _ROLLS,
    "roll abort": _ROLLS,
    "roll undo": _ROLLS,
    "roll rm": _ROLLS,
    "secret allow": "it runs once",
    "secret list": _FILES,
    "secret remove": "it runs once",
    "secret set": "it runs once",
    "audit verify": _FILES,
    "backup": "it runs once",
    "restore": "it runs once",
    "token certify": _TOKEN,
    "token make": _TOKEN,
    "token revoke": _TOKEN,
    "exec": "it runs once",
    "evict": "it runs once",
    "override": "it runs once",
    "unclaimed": "there are no events for such machines: run it again",
    "claim": _ONCE,
    "thaw": "it runs once; `haptera freeze --watch` shows what stays frozen",
    "submit": "`--wait` waits for the end; `haptera why job:N` shows the state",
    "jobs": _QUEUE,
    "cancel": _QUEUE,
    "queue": _QUEUE,
    "drain": _DUTY,
    "hold": _DUTY,
    "resume": _DUTY,
    "job": "it ends with its command; `haptera get --watch node:NAME` shows whether a node is busy",
    "fence run": "it ends with its command; `haptera get --watch lease` shows who leads",
    "fence check": "it ends with its command",
    "watch": "it already prints each change: omit the option",
    "lint": _FILES,
    "module new": "it runs once",
    "module lint": _FILES,
    "module list": "it asks no parent; `haptera get --watch module` shows running modules",
    "module check": "it runs once",
    "module reload": _ONCE,
    "completion": _FIXED,
    "minos build": "it runs once",
    "minos show": _FILES,
    "lab": "it already shows its cluster until it is stopped: omit the option",
    "lab break": "it injects a fault: watch what follows with watch or why",
    "standby": _RUNS,
    "promote": _ONCE,
    "serve": _RUNS,
    "agent": _RUNS,
}


def told(error: click.NoSuchOption) -> click.UsageError:
    """The error, with what to type instead where it is of a verb without --watch."""
    verb = "" if error.ctx is None else error.ctx.command_path.partition(" ")[2]
    if error.option_name not in _OPTION or verb not in UNWATCHED:
        return error
    return click.UsageError(f"{verb} has no --watch: {UNWATCHED[verb]}", error.ctx)
