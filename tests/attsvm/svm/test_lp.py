"""The ℓp Att-SVM."""

from __future__ import annotations

import numpy as np
import pytest
from svmtools import close, combination, infeasible, instance, margins

from attsvm import formulations, svm
from attsvm.errors import InfeasibleError


def entrywise(W, p):
    return (np.abs(W) ** p).sum() ** (1 / p)


@pytest.mark.parametrize("p", [1.1, 1.5, 1.75, 2.0, 3.0, 6.0])
def test_certified_by_the_dual_norm(p):
    q = p / (p - 1)
    for seed, size in enumerate([(2, 3, 3), (4, 4, 4), (6, 8, 10)]):
        X, Z, tokens = instance(seed, *size)
        solution = svm.solve_lp(X, Z, tokens, p=p)
        M = combination(X, Z, tokens, solution.dual)
        bound = solution.dual.sum() / entrywise(M, q)
        objective = entrywise(solution.W, p)
        assert solution.objective == pytest.approx(objective, rel=1e-12)
        assert margins(X, Z, tokens, solution.W).min() >= 1 - 1e-10
        assert objective - bound <= 1e-10 * objective
        assert (solution.norm, solution.power) == ("lp", p)


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_agrees_with_cvxpy(p):
    X, Z, tokens = instance(1, 4, 4, 4)
    program = formulations.att_svm(X, Z, tokens, norm=p, form="matrix")
    W = formulations.value_of(program, solver="CLARABEL")
    solution = svm.solve_lp(X, Z, tokens, p=p)
    assert solution.objective == pytest.approx(program[0].value, rel=1e-7)
    close(solution.W, W, 1e-3)


def test_two_is_frobenius():
    X, Z, tokens = instance(2, 5, 5, 6)
    close(svm.solve_lp(X, Z, tokens, p=2).W, svm.solve(X, Z, tokens).W, 1e-10)


def test_exponents_differ():
    X, Z, tokens = instance(2, 5, 5, 6)
    found = {p: svm.solve_lp(X, Z, tokens, p=p).W for p in (1.2, 2.0, 4.0)}
    for p, W in found.items():
        for other in found.values():
            assert entrywise(W, p) <= entrywise(other, p) * (1 + 1e-10)
    # Small p likes few large entries, large p many equal ones.
    spread = [np.abs(found[p]).max() / np.abs(found[p]).mean() for p in (1.2, 2.0, 4.0)]
    assert spread[0] > spread[1] > spread[2]


def test_closed_form_with_one_constraint():
    # min ‖W‖_p s.t. <a, W> ≥ 1: W = |a|^{q−1} sign(a) / ‖a‖_q^q.
    X, Z, tokens = instance(0, 1, 2, 3)
    a = np.outer(X[0, tokens[0]] - X[0, 1 - tokens[0]], Z[0])
    for p in (1.3, 4.0):
        q = p / (p - 1)
        expected = np.abs(a) ** (q - 1) * np.sign(a) / (np.abs(a) ** q).sum()
        close(svm.solve_lp(X, Z, tokens, p=p).W, expected, 1e-10)


def test_infeasible_and_empty():
    with pytest.raises(InfeasibleError):
        svm.solve_lp(*infeasible(), p=3)
    solution = svm.solve_lp(*infeasible(), p=3, on_infeasible="return")
    assert solution.status is svm.Status.INFEASIBLE
    X, Z, _ = instance(0, 2, 1, 3)
    assert (svm.solve_lp(X, Z, [0, 0], p=3).W == 0).all()
