"""What the tests of the rebuild share: copies of a tiny book, and the command line on them."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

import attsvm
import companion

REPOSITORY = Path(__file__).parents[2]
TINY = Path(__file__).parents[1] / "data" / "tinybook"
WALKS = TINY.with_name("walks")
"""Another small book, whose subject is not this project's."""
CHAPTER = "01-demo/line"

Notebook = dict[str, Any]


def copy_book(target: Path, book: Path = TINY) -> Path:
    """A private copy of a book; a space in its path, because people have those."""
    root = target / "a book"
    shutil.copytree(book, root, ignore=shutil.ignore_patterns("_build"))
    return root


def command(*arguments: object) -> list[str]:
    """The command line of `python -m attsvm`."""
    return [sys.executable, "-m", "attsvm", *map(str, arguments)]


def run(
    *arguments: object,
    code: int = 0,
    environment: Mapping[str, str] | None = None,
    cwd: Path = TINY,
) -> subprocess.CompletedProcess[str]:
    """Run `attsvm` in a process of its own, which must end with this exit code."""
    done = subprocess.run(
        command(*arguments),
        env=settings(environment),
        # Not the repository: Python would take the package there rather than the snapshot.
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, f"{arguments}: {done.stdout}{done.stderr}"
    return done


def start(
    *arguments: object, environment: Mapping[str, str] | None = None, cwd: Path = TINY
) -> subprocess.Popen[str]:
    """Start `attsvm` beside the test."""
    return subprocess.Popen(
        command(*arguments),
        env=settings(environment),
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str], number: int = signal.SIGKILL) -> str:
    """End what is executing a chapter; with it end all processes that it began. What it said."""
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 2  # the chapter's process and its kernel
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == (130 if number != signal.SIGKILL else -number), said
    assert psutil.wait_procs(family, timeout=30)[1] == []
    return said


@functools.cache
def _snapshot() -> tempfile.TemporaryDirectory[str]:
    """The package as it is now: an edit while the tests run would be a reason to run again."""
    folder = tempfile.TemporaryDirectory(prefix="attsvm-snapshot-")
    for package in (attsvm, companion):
        source = Path(package.__file__).parent
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, Path(folder.name) / source.name, ignore=ignored)
    return folder


def copy_package(target: Path) -> Path:
    """Copy the package into a folder; with that in `PYTHONPATH` the copy is the one in use."""
    shutil.copytree(_snapshot().name, target)
    return target / "attsvm"


def settings(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a build: a fixed date, as a copy of a book belongs to no commit."""
    fixed = {"SOURCE_DATE_EPOCH": "1700000000", "PYTHONPATH": _snapshot().name}
    return dict(os.environ) | fixed | dict(environment or {})


@contextmanager
def serving(root: Path) -> Iterator[str]:
    """The address of `attsvm serve` while it runs; it must end by being told to."""
    server = start("serve", "--root", root, "--port", 0)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().split()[0]
    finally:
        server.terminate()
        server.communicate(timeout=30)
    assert server.returncode == 130


def build(root: Path, *arguments: object, **options: Any) -> str:
    """Run `attsvm build` on a book, quick unless told otherwise; what it said."""
    return run("build", "--root", root, "--profile", "quick", *arguments, **options).stderr


def state(root: Path, *arguments: object, **options: Any) -> str:
    """What `attsvm list` says of the tiny book's chapter, in full scale: state and reason."""
    listing = run("list", "--root", root, *arguments, **options).stdout
    line = next(text for text in listing.splitlines() if text.startswith(CHAPTER))
    return " ".join(line.split()[1:])


def executed(root: Path) -> list[str]:
    """Chapters that the last successful build ran."""
    return json.loads((root / "_build" / "times.json").read_text())["executed"]


def page(root: Path, name: str = CHAPTER) -> str:
    """A page of the site."""
    return (root / "_build" / "html" / "book" / f"{name}.html").read_text(encoding="utf-8")


def notebook_path(root: Path, chapter: str = CHAPTER) -> Path:
    """The committed notebook of a chapter."""
    return root / "book" / f"{chapter}.ipynb"


def edit(root: Path, change: Callable[[Notebook], object], chapter: str = CHAPTER) -> None:
    """Change a committed notebook in place."""
    path = notebook_path(root, chapter)
    notebook = json.loads(path.read_text())
    change(notebook)
    path.write_text(json.dumps(notebook, indent=1))


def code(source: str, tags: Sequence[str] = ()) -> dict[str, Any]:
    """A code cell without outputs."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": "new",
        "metadata": {"tags": list(tags)} if tags else {},
        "outputs": [],
        "source": source,
    }


def report(chapter: str, name: str, value: str, holds: str) -> str:
    """Source of a cell that judges a claim which is in no registry: by a value, by a condition.

    Only `attsvm run` and `attsvm sweep` take such a claim; a build refuses it.
    """
    return f"""\
from attsvm import records
value = {{"value": {value}, "halfwidth": 0.5, "low": 0.0, "high": 0.0, "n": 12}}
record = {{
    "id": "{name}", "chapter": "{chapter}", "place": "nowhere",
    "statement": "The mean of squares is small.", "criterion": "mean: below the bound",
    "quantity": "mean", "why": "why not", "published": None, "certified": value,
    "as_published": value | {{"value": 7.0}}, "verdict": "holds" if {holds} else "fails",
    "expected": "holds", "reason": "",
}}
records.write_json(records.context().output / "claims" / "{name}.json", record)
records.display({{"application/vnd.attsvm.claim+json": record, "text/plain": "a claim"}})"""


def measured(
    name: str, value: float, verdict: str = "holds", halfwidth: float = 0.5, **more: object
) -> dict[str, object]:
    """A record of a claim, as far as `attsvm drift` reads it."""
    certified = {"value": value, "halfwidth": halfwidth, "low": value, "high": value, "n": 4}
    return {"id": name, "verdict": verdict, "certified": certified, "as_published": None} | more


def write_results(folder: Path, *records: dict[str, object], versions: dict[str, str]) -> Path:
    """Write what a build leaves: claims, and a figure whose passport names these versions."""
    for kind in ("claims", "figures"):
        (folder / kind).mkdir(parents=True)
    for one in records:
        (folder / "claims" / f"{one['id']}.json").write_text(json.dumps(one))
    figure = {"passport": {"versions": versions}}
    (folder / "figures" / "line.json").write_text(json.dumps(figure))
    return folder


def add_cell(root: Path, source: str, chapter: str = CHAPTER) -> None:
    """Append a code cell to a chapter."""
    edit(root, lambda notebook: notebook["cells"].append(code(source)), chapter)


def add_chapter(root: Path, chapter: str, *sources: str) -> None:
    """Add a chapter without figures: a heading, a parameters cell, and cells with these sources."""
    notebook = {
        "cells": [
            {"cell_type": "markdown", "id": "head", "metadata": {}, "source": f"# {chapter}"},
            code("size = 1  # how large; full scale: the same", ["parameters"]),
            *map(code, sources),
        ],
        "metadata": {
            "attsvm": {"claims": [], "figures": [], "full": {}},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path = notebook_path(root, chapter)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(notebook, indent=1))
    with (root / "_toc.yml").open("a") as toc:
        toc.write(f"  - file: book/{chapter}\n")


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tree(folder: Path) -> dict[str, bytes]:
    """Content of all files below a folder, but for those that hold measured times."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("times.json", "times.js")
    }
