"""Where everything lies: the parts of a book, and the folders that a build writes."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from attsvm.errors import ArgumentError

__all__ = ["PROFILES", "Layout", "commit", "files_in", "remove", "source_date"]

PROFILES = ("quick", "full")

# The first moment that a ZIP archive can hold; used where no commit gives a date.
EPOCH = 315532800


class _In:
    """A path below a folder of the layout: below ``root`` or ``output``."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder, self.name = folder, name

    def __get__(self, layout: Layout, owner: type) -> Path:
        return Path(getattr(layout, self.folder), self.name)


@dataclass(frozen=True)
class Layout:
    """The paths of one book and of one output folder."""

    root: Path  # holds `_config.yml`, `_toc.yml`, `book/` and `requirements.lock`
    output: Path  # where everything made goes to; nothing outside it is ever written

    book = _In("root", "book")
    config = _In("root", "_config.yml")
    toc = _In("root", "_toc.yml")

    chapters = _In("output", "chapters")  # executed, kept from build to build
    chunks = _In("output", "chunks")  # finished parts of the chapters' experiments
    site = _In("output", "html")  # the last complete one; `index.html` lies in it
    work = _In("output", "work")  # scratch space of the build that is running
    logs = _In("output", "logs")  # what chapters and Jupyter Book printed
    settings = _In("output", "settings")  # private ones of IPython, Jupyter and matplotlib
    times = _In("output", "times.json")  # measured; not in the site, which never varies
    guard = _In("output", ".lock")  # keeps two builds in one folder apart

    @classmethod
    def of(
        cls,
        root: str | Path | None = None,
        output: str | Path | None = None,
        *,
        writes: bool = False,
    ) -> Layout:
        """Find the book and its output folder.

        Parameters
        ----------
        root
            The book's folder; by default the nearest one upwards of the working directory.
        output
            By default ``_build`` in the root.
        writes
            Whether the caller will write there: the folder is made, and tried.

        Raises
        ------
        ArgumentError
            If no book is there, or the output folder is not one that can be written.
        """
        found = _find_root(root)
        folder = Path(output).expanduser().absolute() if output else found / "_build"
        if folder == found or folder in found.parents:
            raise ArgumentError("output", "a folder of its own", f"{folder}, which holds the book")
        if writes:
            _require_writable(folder)
        return cls(found, folder)


def files_in(folder: Path) -> dict[str, Path]:
    """All files below a folder by their name in it, sorted."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in found}


def remove(path: Path) -> None:
    """Remove a folder with all that is in it, or a file, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _find_root(root: str | Path | None) -> Path:
    if root is not None:
        folder = Path(root).expanduser().absolute()
        if not (folder / "_toc.yml").is_file() or not (folder / "_config.yml").is_file():
            raise ArgumentError("root", "a folder with _config.yml and _toc.yml", str(folder))
        return folder
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "_toc.yml").is_file() and (folder / "_config.yml").is_file():
            return folder
    raise ArgumentError("root", "a book (_config.yml and _toc.yml) here or above", str(here))


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Permission bits do not tell the whole truth (read-only mounts, full disks): try it.
        probe = folder / f".write-test-{os.getpid()}"
        probe.write_text("attsvm\n")
        probe.unlink()
    except OSError as error:
        raise ArgumentError(
            "output", "a folder that can be written", f"{folder} ({error.strerror})"
        ) from error


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def commit(root: Path) -> str:
    """Name the state of the sources: a commit, ``-modified`` where files differ from it.

    Outside a git repository the answer is ``"unversioned"``.
    """
    head = _git(root, "rev-parse", "HEAD")
    if head is None:
        return "unversioned"
    changed = _git(root, "status", "--porcelain", "--untracked-files=no", "--", ".")
    return f"{head}-modified" if changed else head


def source_date(root: Path) -> int:
    """The moment that every written file carries, in seconds since 1970.

    ``SOURCE_DATE_EPOCH`` if it is set, else the date of the last commit, else a constant: two
    builds of one commit agree, whenever they run.

    Raises
    ------
    ArgumentError
        If ``SOURCE_DATE_EPOCH`` is set to something that is not a whole number of seconds.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        if not given.isdigit():
            raise ArgumentError("SOURCE_DATE_EPOCH", "whole seconds since 1970", repr(given))
        return int(given)
    date = _git(root, "log", "-1", "--format=%ct")
    return int(date) if date else EPOCH
