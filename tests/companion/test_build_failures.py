"""A build that fails says where and why, and leaves the last good site alone."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import booktools
import psutil
import pytest
from booktools import CHAPTER, add_cell, edit
from clustertools import wait_for


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny book with a site, quick profile; do not change it."""
    root = booktools.copy_book(tmp_path_factory.mktemp("built"))
    booktools.build(root)
    return root


@pytest.fixture
def book(built: Path, tmp_path: Path) -> Path:
    """A private copy of the built book with its site."""
    return Path(shutil.copytree(built, tmp_path / "a copy"))


def fails(root: Path) -> str:
    """Build, hold on to the promises of every failure, return what was said."""
    site = root / "_build" / "html"
    before = booktools.tree(site)
    said = booktools.build(root, code=1)
    assert booktools.tree(site) == before
    assert len(before) > 50
    assert not (root / "_build" / "work").exists()
    assert "\x1b" not in said
    return said


def cell(source: str) -> Callable[[Path], None]:
    return lambda root: add_cell(root, source)


def declare(kind: str, *names: str) -> Callable[[Path], None]:
    declared = {kind: list(names)}
    return lambda root: edit(root, lambda nb: nb["metadata"]["attsvm"].update(declared))


def unknown_claim(root: Path) -> None:
    declare("claims", "all-is-well")(root)
    add_cell(root, booktools.report(CHAPTER, "all-is-well", "0.0", "True"))


def dead_link(root: Path) -> None:
    with (root / "book" / "intro.md").open("a") as page:
        page.write("\nSee [nothing](no-such-page.md).\n")


def dead_link_in_a_notebook(root: Path) -> None:
    edit(root, lambda nb: nb["cells"][0]["source"].append("\n\n[x](no-such-page.md)"))


SPOIL = """\
(output / 'line.pdf').write_bytes(b'')
(output / 'line.csv').unlink()
record['alt'] = ' '
done = (output / 'line.json').write_text(json.dumps(record))"""
NOT_DONE = f"chapter {CHAPTER} declares it but has not"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            cell("# divide\nvalue = 1 / (points - 3)"),
            [f"{CHAPTER}, cell 4 (# divide) failed", "ZeroDivisionError: division by zero"],
        ),
        (cell("import os\nos._exit(3)"), [f"chapter {CHAPTER} failed", "DeadKernelError"]),
        (
            cell("import warnings\nwarnings.warn('mind the step')"),
            ["cell 4 wrote to stderr", "mind the step"],
        ),
        (cell("object()"), ["cell 4 shows a memory address"]),
        (declare("figures", "line", "circle"), [f"figure circle: {NOT_DONE} published it"]),
        (declare("figures"), ["figure line: published, but no chapter declares it"]),
        (
            cell(SPOIL),
            [
                "figure line: has no alt text",
                "figure line: its pdf file figures/line.pdf is empty",
                "figure line: its csv file figures/line.csv is missing",
            ],
        ),
        (declare("claims", "all-is-well"), [f"claim all-is-well: {NOT_DONE} reported it"]),
        (unknown_claim, ["claim all-is-well: is not in the registry of claims"]),
        (
            dead_link,
            ["Jupyter Book could not render the book", "intro.md", "no-such-page.md"],
        ),
        (dead_link_in_a_notebook, ["book/01-demo/line.ipynb, cell 1, line "]),
    ],
)
def test_failure_is_named(book: Path, change: Callable[[Path], None], said: list[str]) -> None:
    change(book)
    told = fails(book)
    assert [text for text in said if text not in told] == []


def test_fixed_chapter_runs_again_after_a_failure(book: Path) -> None:
    original = booktools.notebook_path(book).read_text()
    add_cell(book, "1 / 0")
    fails(book)
    booktools.notebook_path(book).write_text(original)
    booktools.build(book)
    assert booktools.executed(book) == []


def test_progress_bars_stay_out_of_the_page(book: Path) -> None:
    add_cell(book, "from tqdm import tqdm\nfor _ in tqdm(range(3), disable=False): pass")
    booktools.build(book)
    assert "it/s" not in booktools.page(book)


STRAY = (
    "its parameters cell cannot be read: "
    "only lines 'name = value' may stand there, not 'print('hello')'"
)
UNKNOWN = "unknown parameter slop in metadata.attsvm.full; the parameters cell has points, slope"
OUTPUT = {"output_type": "stream", "name": "stdout", "text": "hello"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda nb: nb["metadata"]["attsvm"]["full"].update(slop=1), UNKNOWN),
        (lambda nb: nb["cells"][1].update(metadata={}), "no code cell is tagged 'parameters'"),
        (lambda nb: nb["cells"][1]["source"].append("\nprint('hello')"), STRAY),
        (
            lambda nb: nb["cells"][2].update(outputs=[OUTPUT]),
            "cell 3 has outputs: strip them before committing",
        ),
        (
            lambda nb: nb["metadata"]["kernelspec"].update(name="julia"),
            "its kernel is 'julia', expected 'python3'",
        ),
        (
            lambda nb: nb["metadata"].pop("attsvm"),
            "metadata.attsvm is missing (full, figures, claims)",
        ),
    ],
)
def test_unsound_chapter_is_refused_before_anything_runs(
    book: Path, change: Callable[[booktools.Notebook], None], problem: str
) -> None:
    edit(book, change)
    said = fails(book)
    assert f"{CHAPTER}: {problem}" in said
    assert "running" not in said


def test_registered_claim_of_a_chapter_must_be_judged(tmp_path: Path, book: Path) -> None:
    """A registry that puts a claim into the tiny book's chapter, which knows nothing of it."""
    from attsvm import claims

    known = next(claim for claim in claims.registry() if claim.chapter)
    package = booktools.copy_package(tmp_path / "source")
    registry = package / "claims.toml"
    text = registry.read_text()
    assert f'"{known.chapter}"' in text
    registry.write_text(text.replace(f'"{known.chapter}"', f'"{CHAPTER}"'))
    said = booktools.build(book, code=1, environment={"PYTHONPATH": str(package.parent)})
    assert f"claim {known.id}: chapter {CHAPTER} did not report it" in said


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tiny book that was never built."""
    return booktools.copy_book(tmp_path)


def touch(mark: Path, then: Iterable[str] = ("time.sleep(3600)",)) -> str:
    """Source of a cell that says that it has begun, and then sleeps for very long."""
    return "\n".join(["import pathlib, time", f"pathlib.Path({str(mark)!r}).touch()", *then])


def until(mark: Path) -> str:
    return f"while not pathlib.Path({str(mark)!r}).exists(): time.sleep(0.1)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_ends_all_processes_and_keeps_finished_chapters(
    root: Path, tmp_path: Path, number: signal.Signals
) -> None:
    mark = tmp_path / "begun"
    booktools.add_chapter(root, "01-demo/sleep", touch(mark))
    process = booktools.start("build", "--root", root, "--profile", "quick")
    finished = root / "_build" / "chapters" / CHAPTER
    wait_for(lambda: mark.exists() and any(finished.glob("*/manifest.json")), "no chapters")
    assert "interrupted; finished chapters are kept" in booktools.end(process, number)
    assert booktools.state(root, "--profile", "quick") == "cached unchanged"


def test_killed_build_leaves_no_process_and_no_lock(root: Path, tmp_path: Path) -> None:
    mark, toc = tmp_path / "begun", root / "_toc.yml"
    original = toc.read_text()
    booktools.add_chapter(root, "01-demo/sleep", touch(mark))
    process = booktools.start("build", "--root", root, "--profile", "quick")
    wait_for(mark.exists, "no chapter")
    booktools.end(process)
    toc.write_text(original)
    assert "waiting" not in booktools.build(root)


def test_failure_stops_the_chapter_beside_it(root: Path, tmp_path: Path) -> None:
    mark = tmp_path / "begun"
    booktools.add_chapter(root, "01-demo/sleep", touch(mark))
    broken = f"import pathlib, time\n{until(mark)}\nraise RuntimeError('enough')"
    booktools.add_chapter(root, "01-demo/broken", broken)
    said = booktools.build(root, "--jobs", 3, code=1)
    assert "chapter 01-demo/broken, cell 3 (import pathlib, time) failed" in said
    assert "RuntimeError: enough" in said
    mine = f"{root}{os.sep}"
    left = [p for p in psutil.process_iter(["cmdline", "cwd"]) if mine in str(p.info)]
    assert left == []


def test_second_build_waits_for_the_first(root: Path, tmp_path: Path) -> None:
    mark, release = tmp_path / "begun", tmp_path / "release"
    booktools.add_chapter(root, "01-demo/gate", touch(mark, [until(release)]))
    first = booktools.start("build", "--root", root, "--profile", "quick")
    wait_for(mark.exists, "no first build")
    second = booktools.start("build", "--root", root, "--profile", "quick")
    assert second.stderr is not None
    line = second.stderr.readline()
    assert f"Another build (process {first.pid}) is using" in line
    release.touch()
    assert first.communicate(timeout=120)[1].count("Done: 2 chapters executed") == 1
    assert second.communicate(timeout=120)[1].count("Done: 0 chapters executed") == 1
    assert (first.returncode, second.returncode) == (0, 0)
    assert booktools.executed(root) == []


def test_source_edited_while_a_chapter_runs_makes_it_out_of_date(root: Path) -> None:
    data = root / "book" / "01-demo" / "data.csv"
    add_cell(root, f"import pathlib\npathlib.Path({str(data)!r}).write_text('2');")
    booktools.build(root)
    assert booktools.state(root, "--profile", "quick") == "would run files beside it changed"


def test_output_that_cannot_be_written_is_reported_in_one_line(book: Path) -> None:
    log = book / "_build" / "logs" / "jupyter-book.log"
    log.unlink()
    log.mkdir()
    assert f"attsvm: Is a directory: {log}" in booktools.build(book, code=1)
    assert (book / "_build" / "html" / "index.html").is_file()
