"""Wrong input is named, whichever solver it meets."""

from __future__ import annotations

import numpy as np
import pytest
from svmtools import infeasible, instance, solve

from attsvm import formulations, svm
from attsvm.errors import ArgumentError

GOOD_X, GOOD_Z, GOOD_SELECTED = instance(0, 3, 4, 5)
GOOD = {"X": GOOD_X, "Z": GOOD_Z, "selected": GOOD_SELECTED}
GENERAL = {
    "X": GOOD_X,
    "Z": GOOD_Z,
    "selected": np.eye(3, 4, dtype=bool),
    "attention": np.full((3, 4), 0.25),
}
NAN, INF = GOOD_X.copy(), GOOD_Z.copy()
NAN[1, 2, 3], INF[0, 0] = np.nan, np.inf
NO_SEQUENCE = {"X": np.zeros((0, 4, 5)), "Z": np.zeros((0, 5)), "selected": np.zeros(0, int)}

# Which solver, what is changed in good arguments, which one it names and what it says of it.
BAD = [
    (svm.solve, {"X": GOOD_X[0]}, "X", "(n, T, d)"),
    (svm.solve, {"X": GOOD_X[None]}, "X", "(n, T, d)"),
    (svm.solve, {"X": GOOD_X.astype(complex)}, "X", "complex"),
    (svm.solve, {"X": GOOD_X.astype(str)}, "X", "real numbers"),
    (svm.solve, {"X": NAN}, "X", "(1, 2, 3)"),
    (svm.solve, NO_SEQUENCE, "X", "at least one"),
    (svm.solve, {"X": np.zeros((3, 0, 5))}, "X", "at least one"),
    (svm.solve, {"X": np.zeros((3, 4, 0)), "Z": np.zeros((3, 0))}, "X", "at least one"),
    (svm.solve, {"X": 1e80 * GOOD_X}, "X", "1e70"),
    (svm.solve, {"X": 1e-80 * GOOD_X}, "X", "1e-70"),
    (svm.solve, {"Z": 1e80 * GOOD_Z}, "Z", "1e70"),
    (svm.solve, {"Z": GOOD_Z[:2]}, "Z", "(3, 5)"),
    (svm.solve, {"Z": INF}, "Z", "inf"),
    (svm.solve, {"Z": None}, "Z", "real numbers"),
    (svm.solve, {"selected": GOOD_SELECTED[:2]}, "selected", "(3)"),
    (svm.solve, {"selected": [0, 1, 4]}, "selected", "0..3"),
    (svm.solve, {"selected": [0, -1, 2]}, "selected", "-1"),
    (svm.solve, {"selected": [0.0, 1.0, 2.0]}, "selected", "whole numbers"),
    (svm.solve, {"norm": "spectral"}, "norm", "'fro'"),
    (svm.solve, {"mask": np.ones((3, 4))}, "mask", "truth values"),
    (svm.solve, {"mask": np.ones((4, 3), dtype=bool)}, "mask", "(3, 4)"),
    (svm.solve, {"mask": np.zeros((3, 4), dtype=bool)}, "mask", "masked"),
    (svm.solve, {"on_infeasible": "ignore"}, "on_infeasible", "'raise'"),
    (svm.solve_general, {"selected": np.zeros((3, 4), dtype=bool)}, "selected", "none in 0"),
    (svm.solve_general, {"selected": np.ones((3, 4))}, "selected", "truth values"),
    (svm.solve_general, {"selected": np.ones((3, 5), dtype=bool)}, "selected", "(3, 4)"),
    (svm.solve_general, {"attention": np.zeros((3, 4))}, "attention", "above 0"),
    (svm.solve_general, {"attention": np.ones((4, 3))}, "attention", "(3, 4)"),
    (svm.solve_general, {"attention": np.full((3, 4), np.nan)}, "attention", "finite"),
    (svm.solve_general, {"norm": 2}, "norm", "'fro'"),
    (svm.solve_general, {"mask": np.zeros((3, 4), dtype=bool)}, "mask", "masked"),
    (svm.solve_general, {"Z": GOOD_Z.T}, "Z", "(3, 5)"),
    (svm.solve_general, {"Z": 1e80 * GOOD_Z}, "Z", "1e70"),
    (svm.solve_general, {"X": GOOD_X[None]}, "X", "(n, T, d)"),
    *((svm.solve_lp, {"p": p}, "p", "above 1") for p in (1.0, 0.5, np.inf, np.nan, "2", None)),
    (formulations.att_svm, {"norm": "l2"}, "norm", ""),
    (formulations.att_svm, {"norm": 0.5}, "norm", ""),
    (formulations.att_svm, {"form": "rows"}, "form", ""),
    (formulations.att_svm, {"X": GOOD_X[0]}, "X", ""),
    (formulations.att_svm, {"Z": GOOD_Z[0]}, "Z", ""),
    (formulations.att_svm, {"selected": [9, 9, 9]}, "selected", ""),
    (formulations.att_svm, {"mask": np.ones(3, dtype=bool)}, "mask", ""),
]


@pytest.mark.parametrize(("solver", "changes", "name", "says"), BAD)
def test_wrong_arguments_are_named(solver, changes, name, says):
    good = GENERAL if solver is svm.solve_general else GOOD
    with pytest.raises(ArgumentError) as caught:
        solver(**good | changes)
    assert caught.value.argument == name
    assert says in str(caught.value)


def test_unchanged_arguments_are_good():
    assert svm.solve(**GOOD).solved
    assert svm.solve_general(**GENERAL).solved


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"X": GOOD_X}, "X: .*instances"),
        ({name: np.asarray(value)[None][:0] for name, value in GOOD.items()}, "X: .*at least one"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"norm": "l2"}, "norm"),
    ],
)
def test_solve_many_wants_an_instance_axis_and_an_instance(changes, says):
    with pytest.raises(ArgumentError, match=says):
        svm.solve_many(**{name: value[None] for name, value in GOOD.items()} | changes)


@pytest.mark.parametrize("field", ["gap", "nuclear_gap", "violation", "farkas"])
def test_tolerances_are_positive(field):
    with pytest.raises(ArgumentError, match=field):
        svm.Tolerance(**{field: 0.0})


def test_methods_check_their_arguments():
    solution = svm.solve(**GOOD)
    with pytest.raises(ArgumentError, match="tolerance"):
        solution.rank(-1.0)
    with pytest.raises(ArgumentError, match="tolerance"):
        solution.support(float("nan"))
    with pytest.raises(ArgumentError, match="m: "):
        solution.rank_constraint_binds(1.5)
    with pytest.raises(ArgumentError, match="status"):
        solve(*infeasible()).face()
