"""The runner: every seed accounted for, chunks that do not matter, a cache that can be trusted."""

import numpy as np
import pandas as pd
import pytest

from attsvm import experiments
from attsvm._fingerprint import fingerprint
from attsvm.errors import ArgumentError

scale = 2.0
calls: list[list[int]] = []


def squares(seeds):
    return experiments.tabulate(
        seeds,
        over={"power": [1, 2]},
        fate=["kept" if s % 3 else "rejected: divisible by three" for s in seeds],
        value=np.array([[scale * s, scale * s**2] for s in seeds]).T,
    )


@pytest.mark.parametrize("chunk", [1, 3, 100])
@pytest.mark.parametrize("jobs", [1, 2])
def test_chunks_and_processes_change_nothing(chunk, jobs):
    found = experiments.run(squares, range(1, 11), chunk=chunk, jobs=jobs, progress=False)
    table = found.table.set_index(["seed", "power"])["value"]
    assert len(table) == 20
    for s in range(1, 11):
        assert table[s, 1] == 2 * s
        assert table[s, 2] == 2 * s**2
    assert found.ledger.counts() == {"squares": {"kept": 7, "rejected: divisible by three": 3}}
    assert found.seeds == "1..10"
    assert set(found.kept["seed"]) == {1, 2, 4, 5, 7, 8, 10}
    assert "fate" not in found.kept


def test_a_short_run_is_a_prefix_of_a_long_one():
    short = experiments.run(squares, range(5), chunk=2, progress=False).table
    long = experiments.run(squares, range(9), chunk=4, progress=False).table
    both = long[long["seed"] < 5]
    pd.testing.assert_frame_equal(
        short.sort_values(["seed", "power"], ignore_index=True),
        both.sort_values(["seed", "power"], ignore_index=True),
    )


def test_labels_become_rows_of_the_ledger():
    def two(seeds):
        return pd.concat(
            [
                experiments.tabulate(seeds, label="one", fate="kept", x=1),
                experiments.tabulate(seeds, label="other", fate="infeasible", x=2),
            ]
        )

    found = experiments.run(two, [4, 7], progress=False)
    assert found.ledger.counts() == {"one": {"kept": 2}, "other": {"infeasible": 2}}
    assert found.seeds == "4, 7"


def counted(seeds):
    calls.append(list(seeds))
    return experiments.tabulate(seeds, word=["a", "bc"][: len(seeds)], value=np.sqrt(seeds))


def counting(seeds):
    # `calls` must not be part of the fingerprint: it changes with each call.
    return counted_module.counted(seeds)


class counted_module:
    """Stands in for a module: known by its name, not by its content."""

    counted = staticmethod(counted)


def test_finished_chunks_are_found_again(tmp_path):
    calls.clear()
    first = experiments.run(counting, range(4), chunk=2, cache=tmp_path, progress=False)
    assert calls == [[0, 1], [2, 3]]
    again = experiments.run(counting, range(6), chunk=2, cache=tmp_path, progress=False)
    assert calls == [[0, 1], [2, 3], [4, 5]]
    pd.testing.assert_frame_equal(first.table, again.table.iloc[:4])
    assert again.table["word"].tolist() == ["a", "bc"] * 3
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.chunk")}
    for path in before:
        path.unlink()
    experiments.run(counting, range(6), chunk=2, cache=tmp_path, progress=False)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*.chunk")} == before


def variants():
    factor = 3

    def plain(x):
        return factor * x

    def other_code(x):
        return factor * x + 1

    return plain, other_code


def test_fingerprints_tell_code_and_values_apart():
    global scale
    plain, other = variants()
    assert fingerprint(plain) == fingerprint(variants()[0])
    assert fingerprint(plain) != fingerprint(other)
    before = fingerprint(squares)
    scale = 3.0
    try:
        assert fingerprint(squares) != before
    finally:
        scale = 2.0
    assert fingerprint(squares) == before


def test_fingerprints_see_nested_code_defaults_and_arrays():
    def make(values, default):
        def function(x, y=default):
            return [v * x * y for v in values]

        return function

    base = fingerprint(make(np.arange(3), 1))
    assert fingerprint(make(np.arange(3), 1)) == base
    assert fingerprint(make(np.arange(4), 1)) != base
    assert fingerprint(make(np.arange(3), 2)) != base
    assert fingerprint(make({"a": {1, 2}}, 1)) != base


def test_what_has_no_fingerprint_is_named():
    stream = iter([1, 2])

    def uses_a_stream(seeds):
        return next(stream)

    with pytest.raises(ArgumentError, match="stream"):
        fingerprint(uses_a_stream)


def with_ledger(seeds, start, n):
    fate = ["kept" if s % 2 == n % 2 else "infeasible" for s in seeds]
    return experiments.tabulate(
        seeds, label=f"n={n}, from {start}", over={"power": [1, 2]}, fate=fate, n=n, x=float(start)
    )


def test_joined_outcomes_keep_rows_ledgers_and_seeds():
    parts = {
        f"start {start}": experiments.run(
            lambda seeds, start=start: pd.concat([with_ledger(seeds, start, n) for n in (3, 4)]),
            range(start, start + 5),
            progress=False,
        )
        for start in (0, 10)
    }
    joined = experiments.join(parts)
    tables = [part.table for part in parts.values()]
    pd.testing.assert_frame_equal(joined.table, pd.concat(tables, ignore_index=True))
    assert joined.seeds == "0..4; 10..14"
    assert joined.complete
    assert list(joined.ledger.counts()) == [
        f"start {start}: n={n}, from {start}" for start in (0, 10) for n in (3, 4)
    ]
    # One row for each n; an instance counts once, however many rows of the table it has.
    assert joined.ledger_by("n").counts() == {
        "n=3": {"kept": 4, "infeasible": 6},
        "n=4": {"kept": 6, "infeasible": 4},
    }


def test_an_outcome_of_a_table_that_was_cut():
    found = experiments.run(squares, range(1, 11), progress=False)
    cut = experiments.Outcome.of(found.table.query("seed <= 4"), "1..4")
    assert cut.ledger.counts() == {"instances": {"kept": 3, "rejected: divisible by three": 1}}
    assert set(cut.kept["seed"]) == {1, 2, 4} and cut.seeds == "1..4"
