"""`attsvm run` and `attsvm sweep` on the tiny book, in processes of their own."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import booktools
import pytest
from clustertools import wait_for

# An experiment whose chunks can be counted and slowed down from outside.
EXPERIMENT = """\
import json, os
from pathlib import Path
from attsvm import experiments, records

def squares(seeds):
    import os, time
    with open(os.environ["JOURNAL"], "a") as stream:
        stream.write(f"{size} {seeds[0]}\\n")
    time.sleep(float(os.environ.get("SLOWLY", "0")))
    return experiments.tabulate(seeds, x=[(size * s) ** 2 for s in seeds])

found = experiments.run(squares, range(12), chunk=1)
mean = float(found.table["x"].mean())
print(found.ledger)"""
PARAMETERS = """\
size = 1  # factor; at least 1; at most 1000
bound = 50.0  # bound on the mean; above 0
weights = [1, 2]  # weights; each at least 0"""
PROSE = """\
# Squares

A formula $x^2$ in a line, code `$HOME`, a reference {cite}`somebody`, and

$$
\\sum_i x_i^2
$$ (sum)

See {eq}`sum`.

:::{admonition} Try it
:class: tip
Set `size = 2`, so that $x = 2s$.
:::"""


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = booktools.copy_book(tmp_path_factory.mktemp("book"))
    report = booktools.report("01-demo/mean", "tiny.mean", "mean", "mean < bound")
    booktools.add_chapter(root, "01-demo/mean", EXPERIMENT, report)

    def fill(notebook) -> None:
        notebook["cells"][0]["source"] = PROSE
        notebook["cells"][1]["source"] = PARAMETERS
        notebook["metadata"]["attsvm"] = {
            "claims": ["tiny.mean"], "figures": [], "full": {"size": 3}
        }  # fmt: skip

    booktools.edit(root, fill, "01-demo/mean")
    booktools.add_chapter(root, "01-demo/fails", "numbers = [1, 2]\nnumbers[size + 4]")
    return root


class Runner:
    """`attsvm` on a book, with a journal of the chunks that were computed."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self.journal = folder / "journal"

    @property
    def computed(self) -> list[str]:
        return self.journal.read_text().splitlines() if self.journal.exists() else []

    def where(self, **more: str) -> dict[str, Any]:
        return {"environment": {"JOURNAL": str(self.journal)} | more, "cwd": self.folder}

    def __call__(
        self, *arguments: object, code: int = 0, **more: str
    ) -> subprocess.CompletedProcess[str]:
        return booktools.run(*arguments, "--root", self.root, code=code, **self.where(**more))

    def start(self, slowly: float) -> subprocess.Popen[str]:
        """A run of the chapter into `out` that takes so many seconds for each chunk."""
        more = self.where(SLOWLY=str(slowly))
        return booktools.start("run", "mean", "--root", self.root, "--output", "out", **more)


@pytest.fixture
def attsvm(book: Path, tmp_path: Path) -> Runner:
    return Runner(book, tmp_path)


def test_a_chapter_with_other_parameters(attsvm: Runner) -> None:
    command = ("run", "mean", "-p", "size=2", "--output", "out")
    done, out = attsvm(*command), attsvm.folder / "out"
    assert "01-demo/mean: size = 2\n" in done.stdout
    assert "tiny.mean  fails: 168.7 ± 0.5 (12 instances)" in done.stdout
    assert "the verdicts are shown, not compared" in done.stdout
    assert done.stdout.splitlines()[-1] == str(out / "mean.html")
    assert sorted(path.name for path in out.iterdir()) == [
        "claims", "claims.csv", "figures", "mean.html", "mean.ipynb", "run.json"
    ]  # fmt: skip
    notebook = json.loads((out / "mean.ipynb").read_text())
    assert "size = 2  # factor; at least 1" in notebook["cells"][1]["source"]
    record = json.loads((out / "run.json").read_text())
    assert record["changed"] == {"size": 2}
    assert record["parameters"] == {"size": 2, "bound": 50.0, "weights": [1, 2]}
    with (out / "claims.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["claim"], row["side"], float(row["value"]), row["verdict"]) for row in rows] == [
        ("tiny.mean", "certified", pytest.approx(4 * 506 / 12), "fails"),
        ("tiny.mean", "published", 7.0, "fails"),
    ]
    # Once done it is not done again, unless asked for.
    assert len(attsvm.computed) == 12
    assert "done before" in attsvm(*command).stdout
    assert len(attsvm.computed) == 12
    (out / "mean.html").write_text("damaged")
    assert "done before" not in attsvm(*command).stdout
    assert len(attsvm.computed) == 24


def test_the_page_needs_nothing_else(attsvm: Runner) -> None:
    attsvm("run", "mean", "-p", "size=2", "-p", "weights=3,4")
    page = attsvm.folder / "attsvm-runs" / "mean_size-2_weights-3-4" / "mean.html"
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!data:|#)", text)
    assert "<script" not in text and "@import" not in text and "url(" not in text
    # Formulas are drawn, code is left alone, directives of the book are gone.
    assert text.count("<math") == 3
    text = re.sub(r"</?(?:a|span|em)\b[^>]*>", "", text)
    assert re.search(r"<code[^>]*>\$HOME</code>", text)
    assert "$$" not in text and ":::" not in text and "{eq}" not in text and "{cite}" not in text
    assert "Try it" in text and "See (1)." in text and "[somebody]" in text
    assert "The mean of squares is small." in text and "166" not in text
    assert "class='number changed'>[3, 4]" in text


def test_verdicts_count_where_nothing_was_changed(attsvm: Runner) -> None:
    """At full scale the claim of the tiny book fails: that is no surprise to be hidden."""
    quick = attsvm("run", "mean", "--to", "ipynb")
    assert "All verdicts are the registered ones." in quick.stdout
    assert quick.stdout.splitlines()[-1].endswith("attsvm-runs/mean/mean.ipynb")
    assert not (attsvm.folder / "attsvm-runs" / "mean" / "mean.html").exists()
    full = attsvm("run", "mean", "--profile", "full", "--to", "ipynb", code=1)
    assert "Not as registered: tiny.mean should be 'holds'." in full.stdout


def test_a_failing_cell_is_named_without_our_internals(attsvm: Runner) -> None:
    done = attsvm("run", "fails", "--output", "out", code=1)
    complaint = done.stderr[done.stderr.index("attsvm: ") :]
    assert complaint.startswith(
        "attsvm: chapter 01-demo/fails, cell 3 (numbers = [1, 2]) failed: "
        "IndexError: list index out of range\n"
    )
    log = attsvm.folder / "out" / "error.log"
    assert complaint.splitlines()[1:] == [f"the whole traceback is in {log}"]
    assert "numbers[size + 4]" in log.read_text()


def test_what_is_wrong_is_said_before_anything_runs(attsvm: Runner) -> None:
    (attsvm.folder / "mine").mkdir()
    (attsvm.folder / "mine" / "thesis.tex").write_text("years of work")
    for arguments, said in (
        (["maen"], "did you mean 01-demo/mean?"),
        (["mean", "-p", "sice=2"], "(did you mean size?), got 'sice'"),
        (["mean", "-p", "size=big"], "size: expected a whole number, got big"),
        (["mean", "-p", "size=0"], "size: expected at least 1, got 0"),
        (["mean", "--params", "nowhere.yaml"], "params: expected a readable file"),
        (["mean", "--profile", "huge"], "profile: expected one of quick, full"),
        (["mean", "--output", "mine"], "output: expected a new or empty folder"),
        (["mean", "--output", "mine/thesis.tex"], "output: expected a folder that can be written"),
    ):
        complaint = attsvm("run", *arguments, code=2).stderr
        assert said in complaint and complaint.count("\n") == 1
    assert attsvm.computed == []
    assert [path.name for path in (attsvm.folder / "mine").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_ended_run_goes_on_and_two_at_once_do_not_clash(attsvm: Runner, number: int) -> None:
    process = attsvm.start(0.4)
    wait_for(lambda: len(attsvm.computed) >= 4, "too few chunks")
    said = booktools.end(process, number)
    assert (number == signal.SIGINT) == ("interrupted; give the same command again" in said)
    assert len(attsvm.computed) < 12
    for other in [attsvm.start(0), attsvm.start(0)]:
        said = other.communicate(timeout=120)[1]
        assert other.returncode == 0, said
    # One of the two did the rest, less what was there; the chunk that was cut off is done twice.
    assert len(attsvm.computed) <= 13
    assert len(set(attsvm.computed)) == 12
    left = {path.name for path in (attsvm.folder / "out").iterdir()}
    assert left == {"claims", "claims.csv", "figures", "mean.html", "mean.ipynb", "run.json"}


def test_a_sweep_makes_a_table_and_a_page_and_is_not_repeated(attsvm: Runner) -> None:
    out = attsvm.folder / "s"

    def sweep(sizes: str, bounds: str) -> subprocess.CompletedProcess[str]:
        grid = ("-p", f"size={sizes}", "-p", f"bound={bounds}", "--jobs", 2)
        return attsvm("sweep", "mean", *grid, "--output", "s")

    done = sweep("1,2", "10,100")
    assert done.stdout.splitlines() == ["4 of 4 runs done", str(out / "index.html")]
    with (out / "claims.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == [
        "size", "bound", "weights", "claim", "side", "value", "halfwidth", "n", "published",
        "verdict", "registered",
    ]  # fmt: skip
    certified = [row for row in rows if row["side"] == "certified"]
    assert [(row["size"], row["bound"], row["verdict"]) for row in certified] == [
        ("1", "10.0", "fails"),
        ("1", "100.0", "holds"),
        ("2", "10.0", "fails"),
        ("2", "100.0", "fails"),
    ]
    assert {row["weights"] for row in rows} == {"1,2"} and len(rows) == 8
    text = (out / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'href="([^"]+)"', text)
    assert len(links) == 5 and all((out / link).is_file() for link in links)
    assert "http" not in text and "<script" not in text
    assert text.count("168.7 ± 0.5") == 2
    # A larger grid runs what is new.
    before = (out / "claims.csv").read_bytes()
    count = len(attsvm.computed)
    sweep("1,2,3", "100")
    assert len(attsvm.computed) == count + 12
    sweep("1,2", "10,100")
    assert len(attsvm.computed) == count + 12
    assert (out / "claims.csv").read_bytes() == before


def test_a_sweep_goes_on_after_a_failure_and_checks_all_points_first(attsvm: Runner) -> None:
    for arguments, said in (
        (["-p", "size=1,2000"], "size: expected at most 1000, got 2000"),
        (["-p", "size=1,1"], "each point once"),
        (["-p", "size=1,,2"], "size: expected values, separated by commas"),
        (["-p", "sice=1,2"], "did you mean size?"),
        (["-p", "size=1", "--jobs", "0"], "jobs: expected a positive number"),
    ):
        assert said in attsvm("sweep", "mean", *arguments, "--output", "s", code=2).stderr
    assert not (attsvm.folder / "s").exists() and attsvm.computed == []
    (attsvm.folder / "grid.yaml").write_text("size: [1, 2]\n")
    done = attsvm("sweep", "fails", "--params", "grid.yaml", "--output", "s", code=1)
    assert "0 of 2 runs done" in done.stdout
    assert "size = 2: chapter 01-demo/fails, cell 3 (numbers = [1, 2]) failed" in done.stdout
    page = (attsvm.folder / "s" / "index.html").read_text()
    assert page.count("IndexError: list index out of range") == 2


def test_the_cache_can_be_looked_into_and_cleared(attsvm: Runner) -> None:
    folder = attsvm.folder / "chunks"

    def cache(action: str) -> subprocess.CompletedProcess[str]:
        return booktools.run("cache", action, **attsvm.where(ATTSVM_CACHE=str(folder)))

    assert cache("list").stdout == f"{folder}: 0 entries, 0 B\n"
    attsvm("run", "mean", ATTSVM_CACHE=str(folder))
    listing = cache("list").stdout.splitlines()
    # A cache of the reader's own is kept.
    assert len(listing) == 13 and sum("squares, seeds" in line for line in listing) == 12
    entry = next(folder.rglob("*.chunk"))
    entry.write_bytes(entry.read_bytes()[:-3])
    assert "is damaged: cut off or changed" in cache("list").stdout
    assert re.fullmatch(r".*: 12 entries, 1 of them unusable, [\d.]+ kB\n", cache("size").stdout)
    assert "12 entries removed" in cache("clear").stdout
    assert not list(folder.rglob("*.chunk"))
    elsewhere = booktools.run("cache", "size", "--cache", attsvm.journal, code=1)
    assert "is a file, not the folder of a cache" in elsewhere.stderr
