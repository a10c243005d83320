"""The benchmark scripts run, on sizes that take no time; times themselves are never asserted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import _measure
import bench_svm


def test_rows_against_cvxpy():
    rows = bench_svm.against_cvxpy("fro", (2, 3, 3), 2, {"authors' way": 1e9})
    assert [row.who for row in rows] == ["attsvm, svm.solve", "authors' way", "cvxpy, matrix"]
    assert all(row.seconds > 0 for row in rows)
    assert [row.reached for row in rows] == [None, False, None]
    text = _measure.table(rows)
    assert text.count("\n") == 4 and "missed" in text and "1e+09" in text


def test_large_and_batch_and_growth_rows(tmp_path):
    rows = [
        bench_svm.large("nuc", (3, 3, 4), "certified", 1e-8, 60.0),
        bench_svm.batch("fro", (3, 3, 4), 4, None),
        bench_svm.grows("fro", "n", [(2, 3, 6), (4, 3, 6)], 2),
    ]
    assert rows[0].reached and "solved" in rows[0].accuracy
    _measure.write(tmp_path / "rows.json", "svm", rows=[vars(row) for row in rows])
    record = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert len(record["rows"]) == 3 and "numpy" in record["machine"]["versions"]


def test_measures():
    assert _measure.median_ratio([2.0, 9.0, 4.0], [1.0, 3.0, 2.0]) == 2.0
    assert _measure.growth([1, 2, 4], [3.0, 12.0, 48.0]) == pytest.approx(2.0)
    durations = [_measure.duration(s).replace("\u00a0", " ") for s in (2e-5, 3e-2, 4.0)]
    assert durations == ["20 µs", "30 ms", "4 s"]
