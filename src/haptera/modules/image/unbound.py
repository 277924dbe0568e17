"""Room for the tools that a module starts: its own process is bounded in memory."""

import resource


def unbound() -> None:
    """Between fork and exec: take the bound away again, as far as the machine itself has none."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
