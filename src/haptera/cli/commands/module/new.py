"""`haptera module new`: a module to begin with, which works as it stands."""

import keyword
import sys
from importlib import resources
from pathlib import Path
from string import Template
from typing import Final

import click

from haptera.cli.main import OK
from haptera.cli.output.printing import say
from haptera.cli.verb import unwatched
from haptera.model.entity import check_name
from haptera.model.errors import Code, HapteraError
from haptera.modules import BUNDLED

# Each file that is written, with the template that it is made of.
FILES: Final = {
    "pyproject.toml": "pyproject.toml.in",
    "README.md": "README.md.in",
    "site.yaml": "site.yaml.in",
    "{package}/__init__.py": "init.py.in",
    "{package}/device.py": "device.py.in",
    "{package}/module.py": "module.py.in",
    "tests/test_module.py": "test_module.py.in",
}


@click.command("new")
@unwatched("it runs once")
@click.argument("name")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    help="Where to write it; default: a new folder NAME here.",
)
def new(name: str, folder: Path | None) -> int:
    r"""Write a new module called NAME: a package with a module that works, its test, its page.

    It switches nodes of a platform of the same name, files at first, until you put your
    own device in the file's place.

    \b
    Examples:
      haptera module new strip
      haptera module new power-strip --dir ~/modules/strip

    Exit codes: 0 written, 1 the name cannot be, or the folder is not empty, 2 wrong usage.
    """
    package = package_of(name)
    folder = Path(name) if folder is None else folder
    write(folder, name, package)
    say(f"{folder}: a module {name}; its README.md says how to continue")
    return OK


def package_of(name: str) -> str:
    """What the package of a module is called in Python.

    Raises:
        HapteraError: neither a module nor a package can have this name.
    """
    package = check_name(name).replace("-", "_").replace(".", "_").lower()
    if name in BUNDLED:
        raise HapteraError(f"{name} comes with haptera", do="take another name")
    if not package.isidentifier() or keyword.iskeyword(package):
        raise HapteraError(f"{name!r} is not a valid name in Python", do="begin with a letter")
    if package in {*sys.stdlib_module_names, "haptera", "tests"}:
        raise HapteraError(f"another Python package is called {package}", do="take another name")
    return package


def write(folder: Path, name: str, package: str) -> None:
    """Write all files into a folder that is not there, or empty.

    Raises:
        HapteraError: it is neither, or cannot be written.
    """
    templates = resources.files("haptera.cli") / "new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise HapteraError(
                "is not empty",
                where=str(folder),
                do="name another folder: --dir",
                code=Code.FILE_UNWRITABLE,
            )
        for path, template in FILES.items():
            text = (templates / template).read_text(encoding="utf-8")
            file = folder / path.format(package=package)
            file.parent.mkdir(exist_ok=True)
            file.write_text(Template(text).substitute(name=name, package=package), encoding="utf-8")
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise HapteraError(
            what, where=str(folder), do="name a writable folder: --dir", code=Code.FILE_UNWRITABLE
        ) from None
