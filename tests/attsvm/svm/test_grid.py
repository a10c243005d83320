"""A prefix of the large grid in benchmarks/svm_grid.py: no uncertified answer, no disagreement."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import svm_grid


@pytest.mark.parametrize(("norm", "instances"), [("fro", 616), ("nuc", 308)])
def test_no_uncertified_answer_and_no_disagreement(norm, instances):
    report = svm_grid.run(instances, norm)
    assert report["uncertified"] == []
    assert report["disagreements"] == []
    assert sum(report["fates"].values()) == instances
    # Neither verdict is trivial here, and cvxpy did answer.
    assert min(report["fates"][verdict] for verdict in ("solved", "infeasible")) > instances / 10
    assert report["cvxpy gave no clear answer"] <= report["compared with cvxpy"] / 5
    assert report["largest Farkas residual"] <= 1e-12


def test_a_disagreement_would_be_seen():
    _, _, instance = next(svm_grid.instances(1))
    solution = svm_grid.svm.solve(**instance, on_infeasible="return")
    assert svm_grid.disagreement(solution, "optimal", solution.objective) is None
    assert svm_grid.disagreement(solution, "optimal", solution.objective * 1.01)
    assert svm_grid.disagreement(solution, "infeasible", float("inf"))


def test_shorter_runs_are_prefixes():
    short = [instance["X"].tobytes() for _, _, instance in svm_grid.instances(5)]
    longer = [instance["X"].tobytes() for _, _, instance in svm_grid.instances(9)]
    assert short == longer[:5]
