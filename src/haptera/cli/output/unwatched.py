"""The verbs that have no --watch: why, and what to type instead."""

from typing import Final

import click

_OPTION: Final = ("-w", "--watch")
_ONCE: Final = "it is done once; `haptera status --watch` shows what comes of it"
_FILES: Final = "it reads what lies here, and no event tells when that changes: type it again"
_TOKEN: Final = "it is done once; `haptera token list` shows which hold"
_IMAGES: Final = "`haptera get --watch image:NAME` shows how one is"
_QUEUE: Final = "no event tells of jobs: type it again"
_DUTY: Final = "it is done once; `haptera queue` shows where each node stands"
_ROLLS: Final = "`haptera roll status --watch` shows how far rolls have come"
_FIXED: Final = "it always says the same"
_RUNS: Final = "it runs until it is stopped; `haptera status --watch` shows the cluster"

UNWATCHED: Final = {
    "apply": _ONCE,
    "plan": "it is of one moment: `--save` it, and `haptera apply --plan` says what changed since",
    "export": "it is of one moment; `haptera diff --watch FILE` shows what differs from one",
    "import ansible": _FILES,
    "import clustershell": _FILES,
    "import layercake": _FILES,
    "import warewulf": _FILES,
    "site check": _FILES,
    "site schema": _FIXED,
    "graph": "a drawing is of one moment; `haptera chain --watch ENTITY` shows what is still to do",
    "wait": "it ends as soon as what it waits for is so",
    "set": _ONCE,
    "power": _ONCE,
    "unset": _ONCE,
    "retry": _ONCE,
    "revert": _ONCE,
    "image build": _ONCE,
    "image rm": _ONCE,
    "image list": _IMAGES,
    "image show": _IMAGES,
    "roll start": _ROLLS,
    "roll pause": _ROLLS,
    "roll resume": _ROLLS,
    "roll abort": _ROLLS,
    "roll undo": _ROLLS,
    "roll rm": _ROLLS,
    "secret allow": "it is done once",
    "secret list": _FILES,
    "secret remove": "it is done once",
    "secret set": "it is done once",
    "audit verify": _FILES,
    "backup": "it is done once",
    "restore": "it is done once",
    "token certify": _TOKEN,
    "token make": _TOKEN,
    "token revoke": _TOKEN,
    "evict": "it happens once",
    "override": "it is done once",
    "unclaimed": "no event tells of machines that are no node's: type it again",
    "claim": _ONCE,
    "thaw": "it is done once; `haptera freeze --watch` shows what stays frozen",
    "submit": "`--wait` waits for its end; `haptera why job:N` says how it stands",
    "jobs": _QUEUE,
    "cancel": _QUEUE,
    "queue": _QUEUE,
    "drain": _DUTY,
    "hold": _DUTY,
    "resume": _DUTY,
    "job": "it ends with its command; `haptera get --watch node:NAME` shows whether a node is busy",
    "fence run": "it ends with its command; `haptera get --watch lease` shows who leads",
    "fence check": "it ends with its command",
    "watch": "it tells of each change anyway: leave it out",
    "lint": _FILES,
    "module new": "it is done once",
    "module lint": _FILES,
    "module list": "it asks no parent; `haptera get --watch module` shows the modules that run",
    "module check": "it is done once",
    "module reload": _ONCE,
    "completion": _FIXED,
    "minos build": "it is done once",
    "minos show": _FILES,
    "lab": "it shows its cluster until it is stopped: leave it out",
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
