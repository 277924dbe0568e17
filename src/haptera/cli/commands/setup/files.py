"""Files of `haptera setup`: a daemon's options and its unit, and the start of the daemon."""

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Final

import click

from haptera.cli.output.printing import say
from haptera.model.errors import Code, HapteraError, ParseError
from haptera.runtime.identity.private import write_durable

ETC: Final = Path("/etc/haptera")
UNITS: Final = Path("/etc/systemd/system")
# The folder of packaged units: `haptera setup` leaves those as they are.
PACKAGED: Final = Path("/lib/systemd/system")
_PROGRAM: Final = "/opt/haptera/bin/haptera"
# What neither systemd nor a shell reads as anything else.
_WORD: Final = re.compile(r"[A-Za-z0-9_./:@%+=,-]+")
_RUNS: Final = Path("/run/systemd/system")

etc_option = click.option(
    "--etc",
    type=click.Path(file_okay=False, path_type=Path),
    default=ETC,
    show_default=True,
    help="The folder for configuration.",
)
units_option = click.option(
    "--units",
    type=click.Path(file_okay=False, path_type=Path),
    default=UNITS,
    show_default=True,
    help="The folder for systemd's unit, if no package brought it.",
)
start_option = click.option("--no-start", is_flag=True, help="Only write the files.")


def write_file(path: Path, text: str, mode: int) -> None:
    """Put a file, whole or not at all, in a folder that is made where it is missing.

    Raises:
        HapteraError: it cannot be written; what was there is as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durable(path, text.encode())
        path.chmod(mode)
    except OSError as error:
        raise HapteraError(
            f"cannot be written: {error.strerror}",
            where=str(path),
            do="run this as root, or give other folders: --etc, --units",
            code=Code.FILE_UNWRITABLE,
        ) from None
    say(f"wrote {path}")


def write_options(path: Path, variable: str, words: Sequence[str]) -> None:
    """Write a daemon's options as its unit reads them: systemd parts them at spaces.

    Raises:
        HapteraError: a word would not arrive there as it is, or the file cannot be written.
    """
    for word in words:
        if _WORD.fullmatch(word) is None:
            do = "give one without spaces, quotes and other signs of a shell"
            raise ParseError(f"{word!r} cannot be an option of a unit", where=str(path), do=do)
    write_file(path, f'{variable}="{" ".join(words)}"\n', 0o644)


def write_unit(name: str, units: Path) -> None:
    """Put the unit of a daemon in place, with this installation's program in it."""
    file = f"{name}.service"
    if units == UNITS and (PACKAGED / file).exists():
        return
    text = (resources.files("haptera.cli") / "units" / file).read_text(encoding="utf-8")
    # As it was called: a link to it may lead to another version later.
    called = Path(sys.argv[0]).absolute()
    program = called if called.name == "haptera" else Path(sys.executable).with_name("haptera")
    write_file(units / file, text.replace(_PROGRAM, str(program)), 0o644)


def begin(name: str) -> bool:
    """Have systemd start a daemon now and at each boot; False where none runs here.

    Raises:
        HapteraError: systemd refuses.
    """
    if not _RUNS.is_dir() or shutil.which("systemctl") is None:
        return False
    for words in (("daemon-reload",), ("enable", "--now", name)):
        done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            what = f"systemctl {' '.join(words)} failed: {done.stderr.strip()}"
            raise HapteraError(what, where=name, do=f"journalctl -u {name} says why")
    return True
