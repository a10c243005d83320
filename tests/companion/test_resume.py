"""A build that is killed within a long chapter goes on there, and the book is the same."""

from __future__ import annotations

import json
from pathlib import Path

import booktools
from clustertools import wait_for

LONG = "01-demo/long"
# Its chunks can be counted and slowed down from outside.
EXPERIMENT = """\
from attsvm import experiments

def squares(seeds):
    import os, time
    with open(os.environ["JOURNAL"], "a") as stream:
        stream.write(f"{seeds[0]}\\n")
    time.sleep(float(os.environ.get("SLOWLY", "0")))
    return experiments.tabulate(seeds, x=[s * s / 3 for s in seeds], word=[f"w{s}" for s in seeds])

found = experiments.run(squares, range(16), chunk=1)
print(found.ledger)
found.table.groupby("fate")["x"].agg(["sum", "mean", "count"])"""


def prepare(folder: Path) -> tuple[Path, Path]:
    folder.mkdir()
    root = booktools.copy_book(folder)
    booktools.add_chapter(root, LONG, EXPERIMENT)
    return root, folder / "journal"


def executed(root: Path) -> dict[str, bytes]:
    """The executed chapter, without what was measured and when."""
    (entry,) = (root / "_build" / "chapters" / LONG).iterdir()
    return {
        path.relative_to(entry).as_posix(): path.read_bytes()
        for path in entry.rglob("*")
        if path.is_file() and path.name not in ("time.json", "manifest.json")
    }


def test_a_killed_build_goes_on_within_the_chapter(tmp_path: Path) -> None:
    whole, journal = prepare(tmp_path / "whole")
    booktools.build(whole, environment={"JOURNAL": str(journal)})
    assert len(journal.read_text().split()) == 16

    root, journal = prepare(tmp_path / "killed")
    more = {"JOURNAL": str(journal)}

    def computed() -> int:
        return len(journal.read_text().split()) if journal.exists() else 0

    for wanted in (4, 8):
        process = booktools.start(
            *("build", "--root", root, "--profile", "quick"),
            environment=more | {"SLOWLY": "0.5"},
        )
        wait_for(lambda: computed() >= wanted, "too few chunks")  # noqa: B023
        booktools.end(process)
    chunks = root / "_build" / "chunks"
    entries = sorted(chunks.rglob("*.chunk"))
    assert 6 <= len(entries) < 16
    entries[0].write_bytes(entries[0].read_bytes()[:-1])

    said = booktools.build(root, environment=more)
    # The damaged entry is named and computed again; it does not fail the chapter.
    assert f"{entries[0]} is damaged: cut off or changed; computing it anew" in said
    assert f"{LONG}: {len(entries) - 1} chunks of an earlier run are kept" in said
    starts = journal.read_text().split()
    assert len(set(starts)) == 16
    assert len(starts) - 16 <= 2 + 1  # one for each kill, and the damaged one
    # Nothing of the story is in the book, but the times say that they are not the whole.
    assert executed(root) == executed(whole)
    site = [booktools.tree(book / "_build" / "html") for book in (root, whole)]
    assert site[0] == site[1]
    times = json.loads((root / "_build" / "times.json").read_text())["chapters"]
    assert times[LONG]["resumed"] == len(entries) - 1
    assert "resumed" not in times[booktools.CHAPTER]
    assert len(list(chunks.rglob("*.chunk"))) == 16

    # Asked to compute everything anew, a build does not believe what a killed one left.
    kept = chunks / LONG / "quick"
    for path in entries[1:]:
        (kept / path.parent.name / path.name).write_bytes(b"attsvm chunk 1\nof another age")
    forced = booktools.build(root, "--only", LONG, "--force", environment=more)
    assert "computing it anew" not in forced
    assert len(journal.read_text().split()) == len(starts) + 16
    assert executed(root) == executed(whole)
