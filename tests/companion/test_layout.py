"""Paths, and what a build takes from git: the commit's name and date."""

from __future__ import annotations

import io
import subprocess
import time
from pathlib import Path

import booktools
import pytest

from companion.build.layout import EPOCH, Layout, commit, source_date
from companion.build.progress import Progress


def git(folder: Path, *arguments: str) -> str:
    """Run git with an identity and a date of its own."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments],
        env={"PATH": "/usr/bin:/bin", "GIT_COMMITTER_DATE": "2024-05-06T07:08:09+00:00"},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The tiny book as a git repository with one commit."""
    root = booktools.copy_book(tmp_path)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "start")
    return root


def test_commit_is_named_and_dated(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert commit(repository) == head
    (repository / "requirements.lock").write_text("numpy==1\n")
    assert commit(repository) == f"{head}-modified"
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert source_date(repository) == 1714979289
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert source_date(repository) == 1700000000


def test_without_git_the_answers_are_constant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert commit(tmp_path) == "unversioned"
    assert source_date(tmp_path) == EPOCH


def test_everything_made_lies_in_the_output(tmp_path: Path) -> None:
    root = booktools.copy_book(tmp_path)
    layout = Layout.of(root, tmp_path / "out")
    made = [layout.chapters, layout.site, layout.work, layout.logs, layout.settings]
    for path in [*made, layout.times, layout.guard]:
        assert layout.output in path.parents
    assert Layout.of(root).output == root / "_build"


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_draws_bars_in_a_terminal_and_takes_them_away() -> None:
    terminal = Terminal()
    progress = Progress(terminal)
    progress.start("one")
    progress.start("two")
    progress.advance("one", 2, 4)
    progress.finish("one", "done in 1.0 s")
    progress.close()
    said = terminal.getvalue()
    assert "50%" in said and "2/4" in said and "  one: done in 1.0 s\n" in said


def test_progress_without_a_terminal_is_lines_and_a_sign_of_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress.start("one")
    progress.advance("one", 2, 4)
    progress.tick()
    assert stream.getvalue() == "  one: running\n"
    later = time.monotonic() + 61
    monkeypatch.setattr(time, "monotonic", lambda: later)
    progress.tick()
    progress.tick()
    assert stream.getvalue() == "  one: running\n  one: 2 of 4 cells\n"
    progress.finish("one", "done")
    assert stream.getvalue().endswith("  one: done\n")


def test_a_staged_notebook_leaves_the_drawing_to_the_results():
    from companion.build.stage import _lighter

    figure = {"application/vnd.attsvm.figure+json": {"name": "x"}, "image/svg+xml": "<svg/>"}
    other = {"image/svg+xml": "<svg/>", "text/plain": "γ"}
    outputs = [{"data": data, "output_type": "display_data"} for data in (figure, other)]
    notebook = {"cells": [{"cell_type": "markdown"}, {"cell_type": "code", "outputs": outputs}]}
    _, cell = _lighter(notebook)["cells"]
    assert cell["outputs"][0]["data"] == {"application/vnd.attsvm.figure+json": {"name": "x"}}
    assert cell["outputs"][1]["data"] == other
