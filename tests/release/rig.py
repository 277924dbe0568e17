"""A checkout of what lies here, with a changelog and a tag, to make releases of."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AS_NOBODY = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
# Times that a commit has by these are the same in each run.
AT = {"GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000"}


def checkout(folder: Path, version: str) -> Path:
    """All that git has or would have of this checkout, in a commit with the tag of a version."""
    found = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, found.stdout.split("\0")):
        if (source := ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / name, follow_symlinks=False)
    git(folder, "init", "--quiet", "--initial-branch=main")
    next_version(folder, version)
    return folder


def next_version(folder: Path, version: str) -> None:
    text = f"# Changelog\n\n## {version}, 2023-11-14\n\n### Added\n\n- What {version} has.\n"
    (folder / "CHANGELOG.md").write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", version)
    git(folder, "tag", f"v{version}")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *AS_NOBODY, *arguments], cwd=folder, env=AT, check=True)


def release(folder: Path, *options: str | Path, umask: int = 0o022) -> tuple[int, str]:
    """What `make release` runs, and what it says."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.release", "--checkout", folder, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        umask=umask,
    )
    return done.returncode, done.stdout + done.stderr
