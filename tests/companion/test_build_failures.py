"""A build that fails says where and why, and leaves the last good site alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import booktools
import psutil
import pytest
from booktools import CHAPTER


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny book with a site, quick profile; do not change it."""
    root = booktools.copy_book(tmp_path_factory.mktemp("built"))
    done = booktools.build(root)
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def book(built: Path, tmp_path: Path) -> Path:
    """A private copy of the built book with its site."""
    root = tmp_path / "a copy"
    shutil.copytree(built, root)
    return root


def fails(root: Path) -> str:
    """Build, hold on to the promises of every failure, return what was said."""
    site = root / "_build" / "html"
    before = booktools.tree(site)
    done = booktools.build(root)
    assert done.returncode == 1, done.stderr
    assert booktools.tree(site) == before
    assert len(before) > 50
    assert not (root / "_build" / "work").exists()
    return done.stderr


def test_failing_cell_is_named_with_its_traceback(book: Path) -> None:
    booktools.add_cell(book, "# divide\nvalue = 1 / (points - 3)")
    said = fails(book)
    assert f"chapter {CHAPTER}, cell 4 (# divide) failed" in said
    assert "ZeroDivisionError: division by zero" in said
    assert "\x1b" not in said


def test_number_of_a_failing_cell_does_not_count_the_injected_one(book: Path) -> None:
    booktools.add_cell(book, "raise ValueError('as told')")
    done = booktools.run("build", "--root", book, "--profile", "full")
    assert done.returncode == 1
    assert "cell 4 (raise ValueError('as told')) failed" in done.stderr


def test_fixed_chapter_runs_again_after_a_failure(book: Path) -> None:
    original = booktools.notebook_path(book).read_text()
    booktools.add_cell(book, "1 / 0")
    fails(book)
    booktools.notebook_path(book).write_text(original)
    assert booktools.build(book).returncode == 0
    assert booktools.executed(book) == []


def test_kernel_that_dies_is_reported(book: Path) -> None:
    booktools.add_cell(book, "import os\nos._exit(3)")
    said = fails(book)
    assert f"chapter {CHAPTER} failed" in said
    assert "DeadKernelError" in said


def test_warning_fails_the_chapter(book: Path) -> None:
    booktools.add_cell(book, "import warnings\nwarnings.warn('mind the step')")
    said = fails(book)
    assert "cell 4 wrote to stderr" in said
    assert "mind the step" in said


def test_memory_address_fails_the_chapter(book: Path) -> None:
    booktools.add_cell(book, "object()")
    assert "cell 4 shows a memory address" in fails(book)


def test_progress_bars_stay_out_of_the_page(book: Path) -> None:
    bar = "from tqdm import tqdm\nfor _ in tqdm(range(3), disable=False): pass"
    booktools.add_cell(book, bar)
    done = booktools.build(book)
    assert done.returncode == 0, done.stderr
    assert "it/s" not in (book / "_build/html/book/01-demo/line.html").read_text()


STRAY = (
    "its parameters cell cannot be read: "
    "only lines 'name = value' may stand there, not 'print('hello')'"
)
UNKNOWN = "unknown parameter slop in metadata.attsvm.full; the parameters cell has points, slope"


def unknown_parameter(notebook: booktools.Notebook) -> None:
    notebook["metadata"]["attsvm"]["full"]["slop"] = 1


def no_parameters_cell(notebook: booktools.Notebook) -> None:
    notebook["cells"][1]["metadata"] = {}


def stray_statement(notebook: booktools.Notebook) -> None:
    notebook["cells"][1]["source"].append("\nprint('hello')")


def committed_output(notebook: booktools.Notebook) -> None:
    text = {"output_type": "stream", "name": "stdout", "text": "hello"}
    notebook["cells"][2]["outputs"] = [text]


def other_kernel(notebook: booktools.Notebook) -> None:
    notebook["metadata"]["kernelspec"]["name"] = "julia"


def no_declaration(notebook: booktools.Notebook) -> None:
    del notebook["metadata"]["attsvm"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (unknown_parameter, UNKNOWN),
        (no_parameters_cell, "no code cell is tagged 'parameters'"),
        (stray_statement, STRAY),
        (committed_output, "cell 3 has outputs: strip them before committing"),
        (other_kernel, "its kernel is 'julia', expected 'python3'"),
        (no_declaration, "metadata.attsvm is missing (full, figures, claims)"),
    ],
)
def test_unsound_chapter_is_refused_before_anything_runs(
    book: Path, change: Callable[[booktools.Notebook], None], problem: str
) -> None:
    booktools.edit(book, change)
    said = fails(book)
    assert f"{CHAPTER}: {problem}" in said
    assert "running" not in said


def test_figure_that_is_declared_but_missing(book: Path) -> None:
    booktools.edit(book, lambda nb: nb["metadata"]["attsvm"]["figures"].append("circle"))
    assert f"figure circle: chapter {CHAPTER} declares it but has not published it" in fails(book)


def test_figure_that_is_published_but_not_declared(book: Path) -> None:
    booktools.edit(book, lambda nb: nb["metadata"]["attsvm"]["figures"].clear())
    assert "figure line: published, but no chapter declares it" in fails(book)


def test_figure_without_alt_text_or_with_an_empty_file(book: Path) -> None:
    booktools.add_cell(
        book,
        "(output / 'line.pdf').write_bytes(b'')\n"
        "(output / 'line.csv').unlink()\n"
        "record['alt'] = ' '\n"
        "done = (output / 'line.json').write_text(json.dumps(record))",
    )
    said = fails(book)
    assert "figure line: has no alt text" in said
    assert "figure line: its pdf file figures/line.pdf is empty" in said
    assert "figure line: its csv file figures/line.csv is missing" in said


def test_claim_that_nobody_reports(book: Path) -> None:
    booktools.edit(book, lambda nb: nb["metadata"]["attsvm"]["claims"].append("all-is-well"))
    assert f"claim all-is-well: chapter {CHAPTER} declares it but has not reported it" in fails(
        book
    )


def test_claim_that_is_not_in_the_registry(book: Path) -> None:
    booktools.edit(book, lambda nb: nb["metadata"]["attsvm"]["claims"].append("all-is-well"))
    booktools.add_cell(
        book,
        "claims = output.parent / 'claims'\n"
        "claims.mkdir()\n"
        f"record = {{'id': 'all-is-well', 'chapter': '{CHAPTER}'}}\n"
        "done = (claims / 'all-is-well.json').write_text(json.dumps(record))",
    )
    assert "claim all-is-well: is not in the registry of claims" in fails(book)


def test_registered_claim_of_a_chapter_must_be_judged(tmp_path: Path, book: Path) -> None:
    """A registry that puts a claim into the tiny book's chapter, which knows nothing of it."""
    from attsvm import claims

    known = next(claim for claim in claims.registry() if claim.chapter)
    package = booktools.copy_package(tmp_path / "source")
    registry = package / "claims.toml"
    text = registry.read_text()
    assert f'"{known.chapter}"' in text
    registry.write_text(text.replace(f'"{known.chapter}"', f'"{CHAPTER}"'))
    done = booktools.build(book, environment={"PYTHONPATH": str(package.parent)})
    assert done.returncode == 1, done.stderr
    assert f"claim {known.id}: chapter {CHAPTER} did not report it" in done.stderr


def test_warning_of_jupyter_book_is_an_error(book: Path) -> None:
    with (book / "book" / "intro.md").open("a") as page:
        page.write("\nSee [nothing](no-such-page.md).\n")
    said = fails(book)
    assert "Jupyter Book could not render the book" in said
    assert "intro.md" in said
    assert "no-such-page.md" in said


def test_warning_about_a_notebook_names_its_cell(book: Path) -> None:
    booktools.edit(book, lambda nb: nb["cells"][0]["source"].append("\n\n[x](no-such-page.md)"))
    assert "book/01-demo/line.ipynb, cell 1, line " in fails(book)


def children(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def start(root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        booktools.command("build", "--root", root, "--profile", "quick"),
        env=booktools.settings(),
        cwd=booktools.TINY,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def sleeper(root: Path, mark: Path) -> None:
    """Add a chapter that says that it has begun and then sleeps for very long."""
    source = f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(3600)"
    booktools.add_chapter(root, "01-demo/sleep", source)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_ends_all_processes_and_keeps_finished_chapters(
    tmp_path: Path, number: signal.Signals
) -> None:
    root = booktools.copy_book(tmp_path)
    mark = tmp_path / "begun"
    sleeper(root, mark)
    process = start(root)
    finished = root / "_build" / "chapters" / CHAPTER
    wait_for(lambda: mark.exists() and list(finished.glob("*/manifest.json")), "the chapters")
    family = children(process)
    # The chapter's process and its kernel.
    assert len(family) >= 2
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; finished chapters are kept" in said
    assert psutil.wait_procs(family, timeout=20)[1] == []
    assert booktools.state(root, "--profile", "quick") == "cached unchanged"


def test_killed_build_leaves_no_process_and_no_lock(tmp_path: Path) -> None:
    root = booktools.copy_book(tmp_path)
    mark = tmp_path / "begun"
    sleeper(root, mark)
    process = start(root)
    wait_for(mark.exists, "the chapter")
    family = children(process)
    process.kill()
    process.communicate(timeout=60)
    assert psutil.wait_procs(family, timeout=30)[1] == []
    toc = root / "_toc.yml"
    toc.write_text(toc.read_text().replace("  - file: book/01-demo/sleep\n", ""))
    done = booktools.build(root)
    assert done.returncode == 0, done.stderr
    assert "waiting" not in done.stderr


def test_failure_stops_the_chapter_beside_it(tmp_path: Path) -> None:
    root = booktools.copy_book(tmp_path)
    mark = tmp_path / "begun"
    sleeper(root, mark)
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(mark)!r}).exists(): time.sleep(0.1)"
    booktools.add_chapter(root, "01-demo/broken", f"{wait}\nraise RuntimeError('enough')")
    done = booktools.build(root, "--jobs", 3)
    assert done.returncode == 1
    assert "chapter 01-demo/broken, cell 3 (import pathlib, time) failed" in done.stderr
    assert "RuntimeError: enough" in done.stderr
    mine = f"{root}{os.sep}"
    left = [p for p in psutil.process_iter(["cmdline", "cwd"]) if mine in str(p.info)]
    assert left == []


def test_second_build_waits_for_the_first(tmp_path: Path) -> None:
    root = booktools.copy_book(tmp_path)
    mark, release = tmp_path / "begun", tmp_path / "release"
    source = (
        f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\n"
        f"while not pathlib.Path({str(release)!r}).exists(): time.sleep(0.1)"
    )
    booktools.add_chapter(root, "01-demo/gate", source)
    first = start(root)
    wait_for(mark.exists, "the first build")
    second = start(root)
    assert second.stderr is not None
    line = second.stderr.readline()
    assert f"Another build (process {first.pid}) is using" in line
    release.touch()
    assert first.communicate(timeout=120)[1].count("Done: 2 chapters executed") == 1
    assert second.communicate(timeout=120)[1].count("Done: 0 chapters executed") == 1
    assert (first.returncode, second.returncode) == (0, 0)
    assert json.loads((root / "_build" / "times.json").read_text())["executed"] == []


def test_source_edited_while_a_chapter_runs_makes_it_out_of_date(tmp_path: Path) -> None:
    root = booktools.copy_book(tmp_path)
    data = root / "book" / "01-demo" / "data.csv"
    booktools.add_cell(root, f"import pathlib\npathlib.Path({str(data)!r}).write_text('2')")
    booktools.edit(root, lambda nb: nb["cells"][-1].update(source=nb["cells"][-1]["source"] + ";"))
    done = booktools.build(root)
    assert done.returncode == 0, done.stderr
    assert booktools.state(root, "--profile", "quick") == "would run files beside it changed"


def test_output_that_cannot_be_written_is_reported_in_one_line(
    book: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from attsvm import cli

    log = book / "_build" / "logs" / "jupyter-book.log"
    log.unlink()
    log.mkdir()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert cli.main(["build", "--root", str(book), "--profile", "quick"]) == 1
    assert f"attsvm: Is a directory: {log}" in capsys.readouterr().err
    assert (book / "_build" / "html" / "index.html").is_file()
