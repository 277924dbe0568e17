"""Python in a minOS: Debian's interpreter, a trimmed standard library, haptera and its wheels."""

import ast
import importlib.metadata
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import haptera
from haptera.minos.cpio import Entry, file, link, program
from haptera.minos.distribution import files_of, with_libraries
from haptera.model.errors import HapteraError

VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES: Final = (
    f"python{VERSION}-minimal",
    f"libpython{VERSION}-minimal",
    f"libpython{VERSION}-stdlib",
)
# What an agent imports besides the standard library.
WHEELS: Final = ("msgspec", "cryptography", "cffi", "click", "typing_extensions")
APPLICATION: Final = "app"
COMPILE_WITHIN_S: Final = 300
# Parts of the standard library, and of its binaries, that no agent uses.
_LEFT_OUT: Final = frozenset(
    """
    __phello__ antigravity audioop bz2 crypt curses dbm distutils ensurepip idlelib lib2to3 mailbox
    nis nntplib ossaudiodev pdb pydoc pydoc_data readline smtplib sqlite3 test tkinter turtle
    turtledemo unittest venv wsgiref xdrlib xml xmlrpc
    aifc asynchat asyncore cProfile cgi cgitb chunk cmd code colorsys doctest filecmp fileinput
    ftplib imaplib imghdr mailcap modulefinder netrc pickletools pipes plistlib poplib profile
    pstats pyclbr rlcompleter smtpd sndhdr sunau tabnanny telnetlib timeit trace uu wave webbrowser
    zipapp _pydecimal _pyio multiprocessing
    _bz2 _crypt _ctypes_test _curses _curses_panel _dbm _lsprof _lzma _multiprocessing _posixshmem
    _sqlite3 _xxsubinterpreters _xxtestfuzz xxlimited xxlimited_35
    """.split()  # noqa: SIM905  a list of so many names is read best so
)
_LEFT_OUT_BEGINS: Final = (
    "_codecs_",
    "_test",
    "config-",
    "big5",
    "cp",
    "euc_",
    "iso2022_",
    "iso8859_",
    "mac_",
)
# What of the wheels is only used where C is compiled.
_UNUSED: Final = frozenset({"..", "cffi"})
# The parts of haptera that start in a minOS, or that modules of others import there; what these
# import comes with them. The other verbs of `haptera` are not there, nor is a parent.
_STARTED: Final = (
    *("__main__.py", "cli/commands/node/*.py", "daemon/agent.py"),
    *(f"{package}/**/*.py" for package in ("app", "kinds", "model", "modules", "sdk")),
)
# Compiles each of the files named on standard input, and nothing of what compiles tells where or
# when: `SOURCE\tNAME\tTARGET` a line. Without documentation, which nobody reads there.
_COMPILE: Final = """
import py_compile, sys
for line in sys.stdin.read().splitlines():
    source, name, target = line.split("\\t")
    py_compile.compile(
        source, target, name, doraise=True, optimize=2,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
"""


def python_entries() -> list[Entry]:
    """All of Python that an agent needs.

    Raises:
        HapteraError: the distribution has another Python than this one, or lacks a package.
    """
    interpreter = _interpreter()
    sources, binaries = _standard_library()
    own, own_binaries = _application()
    compiled = _compiled(interpreter, {**sources, **own})
    extensions = [
        program(path, binary.read_bytes(), f"extension of {_owner(path)}")
        for path, binary in {**binaries, **own_binaries}.items()
    ]
    elves = [interpreter, *binaries.values(), *own_binaries.values()]
    return [
        program(f"usr/bin/python{VERSION}", interpreter.read_bytes(), "python"),
        link("bin/python3", f"/usr/bin/python{VERSION}", "python"),
        *compiled,
        *extensions,
        *with_libraries(elves, "library"),
    ]


def _interpreter() -> Path:
    name = f"python{VERSION}"
    found = [one for one in files_of(PACKAGES[0]) if one.name == name and one.parent.name == "bin"]
    if not found:
        do = f"run haptera on the distribution's Python, or install {PACKAGES[0]}"
        raise HapteraError(f"{PACKAGES[0]} holds no {name}", do=do)
    return found[0]


def _standard_library() -> tuple[dict[str, Path], dict[str, Path]]:
    """Sources and binaries, by their paths in the minOS."""
    base = Path(f"/usr/lib/python{VERSION}")
    sources: dict[str, Path] = {}
    binaries: dict[str, Path] = {}
    for path in [one for package in PACKAGES[1:] for one in files_of(package)]:
        if not path.is_relative_to(base) or _is_left_out(path.relative_to(base)):
            continue
        inside = str(path).lstrip("/")
        if path.suffix == ".py":
            sources[inside] = path
        elif path.suffix == ".so":
            binaries[inside] = path
    return sources, binaries


def _is_left_out(path: Path) -> bool:
    words = [part.partition(".")[0] for part in path.parts if part != "lib-dynload"]
    return any(word in _LEFT_OUT or word.startswith(_LEFT_OUT_BEGINS) for word in words)


def _application() -> tuple[dict[str, Path], dict[str, Path]]:
    """Haptera and its wheels, as they are installed beside this process."""
    home = Path(haptera.__file__).parent
    found = {f"{APPLICATION}/haptera/{one.relative_to(home)}": one for one in own_files(home)}
    for wheel in WHEELS:
        for one in importlib.metadata.files(wheel) or ():
            if one.suffix in (".py", ".so") and one.parts[0] not in _UNUSED:
                found[f"{APPLICATION}/{one}"] = Path(str(one.locate()))
    sources = {path: source for path, source in found.items() if source.suffix == ".py"}
    return sources, {path: one for path, one in found.items() if one.suffix == ".so"}


def own_files(home: Path) -> set[Path]:
    """The source files of haptera that a node needs: what it starts, and what that imports.

    `home` is the directory of the package. An import inside a function counts like any other, and
    in `runtime` so does a name in a string: that is how it starts and forks processes.
    """
    needed = {path for pattern in _STARTED for path in home.glob(pattern)}
    unread = [*needed]
    while unread:
        found = {_file_of(home, name) for name in _imported(home, unread.pop())}
        unread += (new := {path for path in found if path is not None} - needed)
        needed |= new
    return needed


def _file_of(home: Path, name: str) -> Path | None:
    """The file of a module or package; None: another's, or the name of a thing in a module."""
    top, *parts = name.split(".")
    base = home.joinpath(*parts)
    files = (base.with_suffix(".py"), base / "__init__.py") if top == "haptera" else ()
    return next((file for file in files if file.is_file()), None)


def _imported(home: Path, path: Path) -> Iterator[str]:
    """The modules that a file of haptera's imports or names, and the packages it stands in."""
    packages = path.relative_to(home).parents
    forks = home / "runtime" in path.parents
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif forks and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.partition(":")[0]
    yield from (".".join(("haptera", *package.parts)) for package in packages)


def _compiled(interpreter: Path, sources: Mapping[str, Path]) -> Iterator[Entry]:
    """Each source as the bytecode that is imported in its place, the same on every machine."""
    with tempfile.TemporaryDirectory(prefix="haptera-minos-") as text:
        targets = {
            path: Path(text) / f"{number}.pyc" for number, path in enumerate(sorted(sources))
        }
        lines = [f"{sources[path]}\t/{path}\t{target}" for path, target in targets.items()]
        done = subprocess.run(
            [str(interpreter), "-I", "-S", "-c", _COMPILE],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            check=False,
            timeout=COMPILE_WITHIN_S,
            env={"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise HapteraError(f"not compiled: {last}", where=str(interpreter))
        for path, target in targets.items():
            yield file(f"{path}c", target.read_bytes(), _owner(path))


def _owner(path: str) -> str:
    """Whom a file belongs to, for people."""
    first, _, rest = path.partition("/")
    return rest.partition("/")[0].partition(".")[0] if first == APPLICATION else "standard library"
