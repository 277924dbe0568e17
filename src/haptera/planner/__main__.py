"""Answers of the planner to problems in a file: `python -m haptera.planner FILE`.

docs/reference/problem.md describes problems, answers and exit codes. This file and
`problem_file.py` alone of the planner read and write.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Final

from haptera.model.errors import HapteraError
from haptera.planner.explain.problem_line import Outcome, answer_line, explained_line
from haptera.planner.problem_file import opened, problems

EXIT_CODES: Final = {
    Outcome.CHAIN: 0,
    Outcome.NONE: 2,
    Outcome.BUDGET: 3,
    Outcome.MALFORMED: 64,
}
_UNREADABLE: Final = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer each problem with a line of JSON before the next is read; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m haptera.planner",
        description="Solve planning problems, one JSON document a line.",
    )
    parser.add_argument("file", metavar="FILE", help="a file of problems; - is standard input")
    parser.add_argument("--explain", action="store_true", help="add reasons and alternatives")
    asked = parser.parse_args(arguments)
    answer = explained_line if asked.explain else answer_line
    outcomes = []
    try:
        with opened(asked.file) as stream:
            for problem in problems(stream):
                outcome, answered = answer(problem)
                outcomes.append(outcome)
                sys.stdout.write(f"{json.dumps(answered)}\n")
                sys.stdout.flush()
    except HapteraError as error:
        sys.stderr.write(f"error: {error}\n")
        return _UNREADABLE
    if not outcomes:
        where = "standard input" if asked.file == "-" else asked.file
        sys.stderr.write(f"error: {where} holds no problem (write one on each line)\n")
        return EXIT_CODES[Outcome.MALFORMED]
    return max(EXIT_CODES[one] for one in outcomes)


if __name__ == "__main__":
    sys.exit(main())
