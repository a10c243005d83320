"""The cache of finished chunks: what it notices, what it says, what it refuses."""

from __future__ import annotations

import contextlib
import hashlib
import json
import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from attsvm import chunks, experiments
from attsvm.chunks import CacheError, CacheWarning
from attsvm.errors import ArgumentError, AttsvmError

calls: list[list[int]] = []


class counter:
    """Stands in for a module: what is called through it is known by name, not by content."""

    stop = False

    @classmethod
    def note(cls, seeds: list[int]) -> None:
        calls.append(list(seeds))
        if cls.stop and seeds[0] >= 4:
            raise KeyboardInterrupt


def words(seeds):
    counter.note(seeds)
    return experiments.tabulate(
        seeds, word=[f"w{s}" for s in seeds], value=np.sqrt(seeds), even=[s % 2 == 0 for s in seeds]
    )


def run(folder, count=6, function=words):
    calls.clear()
    return experiments.run(function, range(count), chunk=2, cache=folder, progress=False)


def entry_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.chunk"))


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    run(folder)
    assert len(entry_files(folder)) == 3
    return folder


def test_a_finished_run_is_not_repeated(filled: Path) -> None:
    first = run(filled)
    assert calls == []
    fresh = experiments.run(words, range(6), chunk=2, progress=False)
    pd.testing.assert_frame_equal(first.table, fresh.table)
    assert first.complete and first.ledger.counts() == fresh.ledger.counts()


def test_an_entry_says_what_it_is(filled: Path) -> None:
    found = sorted(chunks.entries(filled), key=lambda entry: entry.seeds)
    assert [entry.seeds for entry in found] == [(0, 1), (2, 3), (4, 5)]
    assert {entry.label for entry in found} == {"words"}
    assert {entry.rows for entry in found} == {2}
    assert not any(entry.problem for entry in found)
    assert [entry.size for entry in found] == [entry.path.stat().st_size for entry in found]


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda content: content[:-1], "cut off"),
        (lambda content: content[: len(content) // 2], "cut off"),
        (lambda content: content[:20], "cut off"),
        (lambda content: b"", "is empty"),
        (lambda content: b"P" + content, "no cache entry of attsvm"),
        (lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:], "or changed"),
        (lambda content: entry({"columns": [["a", "float64"]]}), "written by another version"),
        (lambda content: entry(["no", "header"]), "written by another version"),
        # A sound entry of something else under this name would give wrong numbers.
        (lambda content: entry({"modules": [], "key": "0"}), "the chunk of another experiment"),
    ],
)
def test_a_damaged_entry_is_named_and_computed_anew(filled: Path, damage, word: str) -> None:
    path = entry_files(filled)[1]
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    (bad,) = [entry for entry in chunks.entries(filled) if entry.problem]
    assert bad.path == path and word in bad.problem
    with pytest.warns(CacheWarning) as caught:
        again = run(filled)
    (warning,) = caught
    assert str(path) in str(warning.message) and word in str(warning.message)
    assert len(calls) == 1
    assert path.read_bytes() == whole
    assert again.table["value"].tolist() == np.sqrt(range(6)).tolist()


def entry(header: object) -> bytes:
    """An entry with a right checksum."""
    body = json.dumps(header).encode() + b"\nnot an archive"
    return b"attsvm chunk 1\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def test_an_archive_of_another_format_is_computed_anew(filled: Path) -> None:
    path = entry_files(filled)[0]
    header = {"key": path.stem, "rows": 2, "columns": [["a", "float64"]], "modules": []}
    path.write_bytes(entry(header))
    with pytest.warns(CacheWarning, match="written by another version"):
        run(filled)
    assert len(calls) == 1


def test_leftovers_of_killed_writers_do_no_harm(filled: Path) -> None:
    left = entry_files(filled)[0].with_name(f".{'0' * 64}.chunk.x1y2")
    left.write_bytes(b"half")
    assert len(run(filled).table) == 6 and calls == []
    assert [entry.path for entry in chunks.entries(filled) if entry.problem] == [left]
    assert [entry.path for entry in chunks.sweep(filled)] == [left]
    assert not left.exists() and len(entry_files(filled)) == 3


def test_clearing_removes_entries_and_nothing_else(filled: Path) -> None:
    (filled / "notes.txt").write_text("mine")
    size = sum(path.stat().st_size for path in entry_files(filled))
    assert chunks.clear(filled) == (3, size)
    assert [path.name for path in filled.iterdir()] == ["notes.txt"]
    assert chunks.clear(filled) == (0, 0)
    assert chunks.clear(filled / "nowhere") == (0, 0)


def test_columns_of_every_kind_come_back_as_they_were(tmp_path: Path) -> None:
    def kinds(seeds):
        frame = experiments.tabulate(seeds, a=np.arange(3), b=[1.5, np.nan, np.inf], c=[1, 0, 1])
        return frame.assign(
            mixed=pd.Series([np.True_, None, np.float64(0.5)], dtype=object),
            texts=pd.Series(["ä", "", "x y"], dtype=object),
            small=np.array([1, 2, 3], dtype=np.float32),
            when=pd.to_datetime(["2023-08-31", "2023-09-01", "2024-01-01"]),
        )

    plain = experiments.run(kinds, range(3), progress=False).table
    stored = experiments.run(kinds, range(3), cache=tmp_path, progress=False).table
    loaded = experiments.run(kinds, range(3), cache=tmp_path, progress=False).table
    for other in (stored, loaded):
        pd.testing.assert_frame_equal(plain, other, check_exact=True)
        assert [type(x) for x in other["mixed"]] == [bool, type(None), float]


def test_what_cannot_be_stored_is_named(tmp_path: Path) -> None:
    def sets(seeds):
        return experiments.tabulate(seeds).assign(things=[{1}, {2}])

    with pytest.raises(ArgumentError, match=r"column things: expected numbers.*got \{1\}"):
        experiments.run(sets, range(2), cache=tmp_path, progress=False)


def test_the_key_knows_code_values_seeds_and_machine(tmp_path: Path, monkeypatch) -> None:
    factor = 2.0

    def scaled(seeds):
        return experiments.tabulate(seeds, x=factor)

    def other(seeds):
        return experiments.tabulate(seeds, x=factor + 0)

    keys = [chunks.Store(tmp_path, scaled).key([0]), chunks.Store(tmp_path, scaled).key([1])]
    factor = 3.0
    keys += [chunks.Store(tmp_path, scaled).key([0]), chunks.Store(tmp_path, other).key([0])]
    monkeypatch.setattr("platform.machine", lambda: "abacus")
    keys.append(chunks.Store(tmp_path, scaled).key([0]))
    assert len(set(keys)) == len(keys)


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    taken = tmp_path / "cache"
    taken.write_text("not a folder")
    with pytest.raises(CacheError) as caught:
        run(taken)
    assert str(taken) in str(caught.value) and "ATTSVM_CACHE" in str(caught.value)
    assert calls == []  # it says so before it works
    with pytest.raises(CacheError, match="is a file"):
        list(chunks.entries(taken))


def test_a_read_only_folder_is_a_clear_error_before_any_work() -> None:
    # Nobody can write there, not even root: the kernel's own file system.
    folder = Path("/proc/self/attsvm" if Path("/proc/self").exists() else "/dev/attsvm")
    with pytest.raises(CacheError) as caught:
        run(folder)
    assert f"the cache folder {folder} cannot be written" in str(caught.value)
    assert calls == []


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let the kernel refuse to write files of more bytes, as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_cache_that_cannot_be_written_still_serves(filled: Path) -> None:
    """What is all there needs no writing; what is missing is a clear error before any work."""
    with files_of_at_most(0):
        assert len(run(filled).table) == 6 and calls == []
        with pytest.raises(CacheError, match=r"File too large.*Make room"):
            run(filled, count=8)
        assert calls == []


def growing(seeds):
    counter.note(seeds)
    # From the third chunk on more than 80 kB each.
    rows = range(2500 if seeds[0] > 3 else 1)
    x = np.zeros((len(rows), len(seeds)))
    return experiments.tabulate(seeds, over={"row": list(rows)}, x=x)


def test_a_full_disk_stops_with_a_clear_error_and_loses_nothing(tmp_path: Path) -> None:
    with files_of_at_most(20_000), pytest.raises(CacheError) as caught:
        run(tmp_path, count=40, function=growing)
    assert f"the cache folder {tmp_path} cannot be written" in str(caught.value)
    # All that was computed is in the exception, the chunk that did not fit too.
    kept = caught.value.partial
    assert not kept.complete and len(kept.table) == 4 + 2 * 2500 and len(calls) == 3
    assert not any(entry.problem for entry in chunks.entries(tmp_path))
    assert len(entry_files(tmp_path)) == 2
    # With more room it goes on from there.
    assert len(run(tmp_path, count=40, function=growing).table) == 4 + 36 * 2500
    assert len(calls) == 18


def test_two_processes_share_a_folder(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom attsvm import experiments\n"
        "def squares(seeds):\n"
        "    return experiments.tabulate(seeds, x=[s * s for s in seeds])\n"
        "found = experiments.run(squares, range(60), chunk=1, cache=sys.argv[1], progress=False)\n"
        "print(found.table['x'].sum(), len(found.table))\n"
    )
    command = [sys.executable, "-W", "error", str(script), str(tmp_path / "cache")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = [process.communicate(timeout=120)[0].split() for process in both]
    assert answers == [[str(sum(s * s for s in range(60))), "60"]] * 2
    assert [process.returncode for process in both] == [0, 0]
    found = list(chunks.entries(tmp_path / "cache"))
    assert len(found) == 60 and not any(entry.problem for entry in found)


def stopping(seeds):
    counter.note(seeds)
    return experiments.tabulate(seeds, x=np.sqrt(seeds))


@pytest.mark.parametrize("cached", [True, False])
def test_an_interrupted_run_leaves_its_part_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    folder = tmp_path if cached else None
    monkeypatch.setattr(counter, "stop", True)
    with pytest.raises(experiments.Interrupted) as caught:
        run(folder, count=8, function=stopping)
    error = caught.value
    assert isinstance(error, KeyboardInterrupt)
    assert (error.done, error.total) == (2, 4)
    assert "2 of 4 chunks are done" in str(error) and "goes on from there" in str(error)
    part = experiments.partial()
    assert part is error.partial
    assert not part.complete and part.seeds == "0..3"
    assert part.ledger.counts() == {"stopping": {"kept": 4}}
    monkeypatch.setattr(counter, "stop", False)
    found = run(folder, count=8, function=stopping)
    assert calls == [[4, 5], [6, 7]]
    assert found.complete and found.table["x"].tolist() == np.sqrt(range(8)).tolist()
    # Memory serves once: a finished run is nobody's leftover.
    run(None, count=8, function=stopping)
    assert len(calls) == 4


def test_interrupted_before_the_first_chunk(monkeypatch) -> None:
    def never(seeds):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiments._Memory, "partial", None)
    with pytest.raises(experiments.Interrupted) as caught:
        experiments.run(never, range(4), chunk=2, progress=False)
    assert caught.value.partial is None and str(caught.value) == "never: 0 of 2 chunks are done"
    with pytest.raises(AttsvmError, match="no experiment was interrupted"):
        experiments.partial()


def test_an_error_in_a_late_chunk_keeps_the_early_ones(tmp_path: Path) -> None:
    def fails(seeds):
        if 4 in seeds:
            raise ZeroDivisionError("a bug")
        return experiments.tabulate(seeds, x=1)

    with pytest.raises(ZeroDivisionError):
        run(tmp_path, count=8, function=fails)
    assert len(entry_files(tmp_path)) == 2


@pytest.mark.parametrize("jobs", [0, -2, 1.5, "all"])
def test_bad_numbers_of_processes_are_refused(jobs) -> None:
    with pytest.raises(ArgumentError, match="jobs"):
        experiments.run(words, range(2), jobs=jobs, progress=False)


def test_a_cache_error_survives_the_way_from_a_worker() -> None:
    error = pickle.loads(pickle.dumps(CacheError("no room", Path("/somewhere"))))
    assert (str(error), error.folder, error.partial) == ("no room", Path("/somewhere"), None)
