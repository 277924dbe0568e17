"""The documentation as a site, in `build/docs/site/`: `make docs`, which follows all links.

The pages keep their places, so that links between them are those of the checkout. Two references
are written here: the routes of the API from its OpenAPI document, and the Python packages that
others import from their docstrings.
"""

import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.release.python import pip

ROOT = Path(__file__).resolve().parents[2]
MADE = ROOT / "build" / "docs"
SOURCE = MADE / "source"
REFERENCE = SOURCE / "docs" / "reference"
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")
# Fences have names, by which tests know them; a generator takes none with one for a fence.
NAMED_FENCE = re.compile(r"^( *```\w+) [^\n]+$", re.MULTILINE)
PACKAGES = (
    *("haptera.client", "haptera.client.calls", "haptera.client.node_calls"),
    *("haptera.sdk", "haptera.app", "haptera.testing"),
)


def main() -> int:
    """Build it anew; the exit code of the generator."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE / "docs")
    for page in ROOT.glob("*.md"):
        shutil.copy(page, SOURCE)
    for page in SOURCE.rglob("*.md"):
        page.write_text(NAMED_FENCE.sub(r"\1", page.read_text("utf-8")), "utf-8")
    for target in linked():
        (SOURCE / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / target, SOURCE / target)
    (REFERENCE / "routes.md").write_text("\n".join(routes()), "utf-8")
    (REFERENCE / "python.md").write_text("\n".join(python_reference()), "utf-8")
    shutil.copy(Path(__file__).with_name("zensical.toml"), MADE)
    done = subprocess.run([generator(), "build", "--strict"], cwd=MADE, check=False)
    return done.returncode


def generator() -> Path:
    """The program that builds it, in an environment of its own, by the lock and its hashes."""
    lock, venv_dir = (ROOT / "requirements-docs.txt").read_text("utf-8"), MADE / "venv"
    stamp = venv_dir / "lock.stamp"
    if not stamp.exists() or stamp.read_text("utf-8") != lock:
        venv.create(venv_dir, with_pip=False, symlinks=True, clear=True)
        python = venv_dir / "bin" / "python"
        pip("--python", python, "install", "--require-hashes", "-r", ROOT / "requirements-docs.txt")
        stamp.write_text(lock, "utf-8")
    return venv_dir / "bin" / "zensical"


def linked() -> Iterator[Path]:
    """What pages link to that is no page."""
    for page in SOURCE.rglob("*.md"):
        here = ROOT / page.relative_to(SOURCE).parent
        for link in LINK.findall(page.read_text("utf-8")):
            target = (here / link).resolve()
            if target.is_file() and target.is_relative_to(ROOT) and target.suffix != ".md":
                yield target.relative_to(ROOT)


def routes() -> Iterator[str]:
    """Each route, with what it takes and gives, as the API's own document says."""
    document = json.loads((ROOT / "docs/reference/openapi.json").read_text("utf-8"))
    yield "# Routes of the API\n\n[The OpenAPI document](openapi.json) has all shapes.\n"
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            yield f"## {method.upper()} {path}\n\n{one['summary']}\n"
            if one.get("description"):
                yield f"{one['description']}\n"
            yield from parameters(one.get("parameters", []))
            answers = one["responses"].items()
            told = ", ".join(f"{code} ({answer['description']})" for code, answer in answers)
            yield f"Answers: {told}.\n"


def parameters(given: list[dict[str, Any]]) -> Iterator[str]:
    named = [one for one in given if "name" in one]
    if named:
        yield "| parameter | in | meaning |\n|---|---|---|"
        for one in named:
            text = " ".join(one.get("description", "").split()).replace("|", "\\|")
            yield f"| `{one['name']}` | {one['in']} | {text} |"
        yield ""


def python_reference() -> Iterator[str]:
    """The public names of the packages that programs of others import."""
    yield "# Python reference\n"
    for name in PACKAGES:
        module = importlib.import_module(name)
        yield f"## {name}\n\n{text_of(module)}\n"
        for public in public_names(module):
            yield from described(public, getattr(module, public))


def public_names(module: ModuleType) -> list[str]:
    said = getattr(module, "__all__", None)
    if said is not None:
        return sorted(one for one in said if not inspect.ismodule(getattr(module, one)))
    members = inspect.getmembers(module, inspect.isfunction)
    return [name for name, one in members if one.__module__ == module.__name__ and name[0] != "_"]


def described(name: str, one: object) -> Iterator[str]:
    yield f"### {name}\n"
    if inspect.isclass(one) or inspect.isfunction(one):
        try:
            yield f"```python\n{name}{inspect.signature(one)}\n```\n"
        except ValueError:  # of a class that is built in
            yield ""
    if (text := text_of(one)) and (not isinstance(one, str | int | float | tuple | frozenset)):
        yield f"{text}\n"


def text_of(one: object) -> str:
    """Its docstring, what is typed in it as code."""
    text = inspect.getdoc(one) or ""
    return re.sub(r"^((?:>>> .*\n?)(?:.+\n?)*)", r"```pycon\n\1\n```\n", text, flags=re.MULTILINE)


if __name__ == "__main__":
    sys.exit(main())
