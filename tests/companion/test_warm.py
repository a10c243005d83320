"""Chapters forked from a warm process: the same bytes, faults and ends as chapters started anew."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import booktools
import pytest
from clustertools import wait_for

from companion.build import warm

# Four chapters make forking worth it; on other systems nothing is forked.
EXTRA = ("01-demo/one", "01-demo/two", "01-demo/three")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    book = booktools.copy_book(tmp_path)
    for chapter in EXTRA:
        booktools.add_chapter(book, chapter, "import os\nprint(os.environ['ATTSVM_CHAPTER'])")
    return book


def results(root: Path) -> dict[str, bytes]:
    """What the chapters left, by chapter and file, without times."""
    folder = root / "_build" / "chapters"
    return {
        f"{path.relative_to(folder).parts[:2]} {path.name}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in {"time.json", "manifest.json"}
    }


def test_few_chapters_are_started_and_many_are_forked() -> None:
    assert not warm.pays(warm.WORTH_IT - 1)
    assert warm.pays(warm.WORTH_IT) == (sys.platform == "linux")


def test_forked_chapters_give_the_same_bytes(root: Path, tmp_path: Path) -> None:
    booktools.build(root)
    assert len(booktools.executed(root)) == 1 + len(EXTRA)
    forked = results(root)
    for chapter in [booktools.CHAPTER, *EXTRA]:
        booktools.build(root, "--force", "--only", chapter)
        assert booktools.executed(root) == [chapter]
    assert results(root) == forked
    assert len(forked) > len(EXTRA) + 5


def test_chapters_share_no_state(root: Path) -> None:
    for chapter in EXTRA:
        booktools.add_cell(
            root,
            "import torch\nassert not hasattr(torch, 'left_behind')\ntorch.left_behind = 1\n"
            "os.environ['LEFT'] = os.environ.get('LEFT', '') + '1'\nprint(os.environ['LEFT'])",
            chapter,
        )
    booktools.build(root, "--jobs", 1)


def test_kernel_that_dies_is_reported(root: Path) -> None:
    booktools.add_cell(root, "import os\nos._exit(3)")
    said = booktools.build(root, code=1)
    assert f"chapter {booktools.CHAPTER} failed" in said and "DeadKernelError" in said


def test_failing_cell_is_named(root: Path) -> None:
    booktools.add_cell(root, "1 / 0", EXTRA[0])
    assert f"chapter {EXTRA[0]}, cell 4 (1 / 0) failed" in booktools.build(root, code=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_end_of_the_rebuild_is_the_end_of_all(root: Path, tmp_path: Path, number: int) -> None:
    mark = tmp_path / "begun"
    source = f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(3600)"
    booktools.add_cell(root, source, EXTRA[0])
    process = booktools.start("build", "--root", root, "--profile", "quick")
    wait_for(mark.exists, "the chapter did not begin")
    booktools.end(process, number)


def test_warm_process_that_is_killed_is_reported(root: Path, tmp_path: Path) -> None:
    killer = (
        "import os, psutil\n"
        "above = psutil.Process().parents()\n"
        "warm = [p for p in above if 'multiprocessing.forkserver' in str(p.cmdline())][-1]\n"
        "warm.kill()"
    )
    booktools.add_cell(root, killer, EXTRA[0])
    said = booktools.build(root, "--jobs", 1, code=1)
    # Where nothing is forked, the cell above finds nobody to kill, and fails by itself.
    assert ("ended with code 255" in said) == (sys.platform == "linux")
    assert "companion/build" not in said
