"""Entry of `haptera` and `python -m haptera`."""

import sys

from haptera.cli.main import run


def main() -> None:
    sys.exit(run())


if __name__ == "__main__":
    main()
