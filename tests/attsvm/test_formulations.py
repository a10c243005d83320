"""The cvxpy programs: both forms are the same program, and the authors' habits are kept."""

from __future__ import annotations

import numpy as np
import pytest
from svmtools import instance, margins

from attsvm import formulations

TIGHT = {"solver": "CLARABEL", "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}


@pytest.mark.parametrize("norm", ["fro", "nuc", 3.0])
def test_forms_agree(norm):
    X, Z, tokens = instance(0, 3, 4, 4)
    values = {}
    for form in ("token", "matrix"):
        problem, W = formulations.att_svm(X, Z, tokens, norm=norm, form=form)
        found = formulations.value_of((problem, W), **TIGHT)
        assert margins(X, Z, tokens, found).min() >= 1 - 1e-6
        values[form] = problem.value
    assert values["token"] == pytest.approx(values["matrix"], rel=1e-6)


def test_constraints_are_counted_as_printed():
    X, Z, tokens = instance(0, 3, 4, 4)
    mask = np.ones((3, 4), dtype=bool)
    mask[0, (tokens[0] + 1) % 4] = False
    assert len(formulations.att_svm(X, Z, tokens)[0].constraints) == 9
    assert len(formulations.att_svm(X, Z, tokens, mask=mask)[0].constraints) == 8
    assert len(formulations.att_svm(X, Z, tokens, form="matrix")[0].constraints) == 1
    selected = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 0, 0]], dtype=bool)
    # 2·2 + 3·1 + 1·3 margins; 1 + 3 equalities.
    assert len(formulations.general_svm(X, Z, selected)[0].constraints) == 14
    attention = np.full((3, 4), 0.25)
    assert len(formulations.finite_part(X, Z, selected, attention)[0].constraints) == 4


def test_no_constraint_gives_zero():
    X, Z, _ = instance(0, 2, 1, 3)
    for form in ("token", "matrix"):
        W = formulations.value_of(formulations.att_svm(X, Z, [0, 0], form=form), **TIGHT)
        np.testing.assert_allclose(W, 0.0, atol=1e-8)


def test_infeasible_is_none_and_counts_as_rank_one_as_published():
    W = formulations.solve_as_published(*instance(0, 6, 4, 1))
    assert W is None
    assert formulations.matrix_rank_as_published(W) == 1


def test_the_published_threshold_is_absolute():
    W = np.diag([1.0, 1e-3, 1e-8])
    assert formulations.matrix_rank_as_published(W) == 2
    assert formulations.matrix_rank_as_published(1e6 * W) == 3


def test_solve_as_published_solves():
    X, Z, tokens = instance(1, 3, 3, 4)
    W = formulations.solve_as_published(X, Z, tokens)
    assert margins(X, Z, tokens, W).min() >= 1 - 1e-4
