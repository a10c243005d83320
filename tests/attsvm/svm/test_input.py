"""Wrong input is named, whichever solver it meets."""

from __future__ import annotations

import numpy as np
import pytest
from svmtools import instance

from attsvm import formulations, svm
from attsvm.errors import ArgumentError


def arguments(**changes):
    X, Z, tokens = instance(0, 3, 4, 5)
    return {"X": X, "Z": Z, "selected": tokens} | changes


GOOD_X, GOOD_Z, GOOD_SELECTED = instance(0, 3, 4, 5)
NAN = GOOD_X.copy()
NAN[1, 2, 3] = np.nan
INF = GOOD_Z.copy()
INF[0, 0] = np.inf

BAD = [
    ("X", {"X": GOOD_X[0]}, "(n, T, d)"),
    ("X", {"X": GOOD_X.astype(complex)}, "complex"),
    ("X", {"X": GOOD_X.astype(str)}, "real numbers"),
    ("X", {"X": NAN}, "(1, 2, 3)"),
    (
        "X",
        {"X": np.zeros((0, 4, 5)), "Z": np.zeros((0, 5)), "selected": np.zeros(0, int)},
        "at least",
    ),
    ("X", {"X": np.zeros((3, 0, 5))}, "at least"),
    ("X", {"X": np.zeros((3, 4, 0)), "Z": np.zeros((3, 0))}, "at least"),
    ("X", {"X": 1e80 * GOOD_X}, "1e70"),
    ("X", {"X": 1e-80 * GOOD_X}, "1e-70"),
    ("Z", {"Z": 1e80 * GOOD_Z}, "1e70"),
    ("Z", {"Z": GOOD_Z[:2]}, "(3, 5)"),
    ("Z", {"Z": INF}, "inf"),
    ("Z", {"Z": None}, "real numbers"),
    ("selected", {"selected": GOOD_SELECTED[:2]}, "(3)"),
    ("selected", {"selected": [0, 1, 4]}, "0..3"),
    ("selected", {"selected": [0, -1, 2]}, "-1"),
    ("selected", {"selected": [0.0, 1.0, 2.0]}, "whole numbers"),
    ("norm", {"norm": "spectral"}, "'fro'"),
    ("mask", {"mask": np.ones((3, 4))}, "truth values"),
    ("mask", {"mask": np.ones((4, 3), dtype=bool)}, "(3, 4)"),
    ("mask", {"mask": np.zeros((3, 4), dtype=bool)}, "masked"),
    ("on_infeasible", {"on_infeasible": "ignore"}, "'raise'"),
]


@pytest.mark.parametrize(("name", "changes", "says"), BAD)
def test_solve_names_the_argument(name, changes, says):
    with pytest.raises(ArgumentError) as caught:
        svm.solve(**arguments(**changes))
    assert caught.value.argument == name
    assert says in str(caught.value)


def test_unchanged_arguments_are_good():
    assert svm.solve(**arguments()).status is svm.Status.SOLVED


def test_solve_many_wants_an_instance_axis_and_an_instance():
    X, Z, tokens = instance(0, 3, 4, 5)
    with pytest.raises(ArgumentError, match=r"X: .*instances"):
        svm.solve_many(X, Z, tokens)
    with pytest.raises(ArgumentError, match="X: expected at least one"):
        svm.solve_many(X[None][:0], Z[None][:0], tokens[None][:0])
    with pytest.raises(ArgumentError, match="n_jobs"):
        svm.solve_many(X[None], Z[None], tokens[None], n_jobs=0)
    with pytest.raises(ArgumentError, match="norm"):
        svm.solve_many(X[None], Z[None], tokens[None], norm="l2")
    with pytest.raises(ArgumentError, match="X: "):
        svm.solve(X[None], Z[None], tokens[None])


@pytest.mark.parametrize("field", ["gap", "nuclear_gap", "violation", "farkas"])
def test_tolerances_are_positive(field):
    with pytest.raises(ArgumentError, match=field):
        svm.Tolerance(**{field: 0.0})


def test_methods_check_their_arguments():
    solution = svm.solve(**arguments())
    with pytest.raises(ArgumentError, match="tolerance"):
        solution.rank(-1.0)
    with pytest.raises(ArgumentError, match="tolerance"):
        solution.support(float("nan"))
    with pytest.raises(ArgumentError, match="m: "):
        solution.rank_constraint_binds(1.5)
    X, Z, tokens = instance(0, 15, 5, 2)
    infeasible = svm.solve(X, Z, tokens, on_infeasible="return")
    with pytest.raises(ArgumentError, match="status"):
        infeasible.face()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("selected", {"selected": np.zeros((3, 4), dtype=bool)}),
        ("selected", {"selected": np.ones((3, 4))}),
        ("selected", {"selected": np.ones((3, 5), dtype=bool)}),
        ("attention", {"attention": np.zeros((3, 4))}),
        ("attention", {"attention": np.ones((4, 3))}),
        ("attention", {"attention": np.full((3, 4), np.nan)}),
        ("norm", {"norm": 2}),
        ("mask", {"mask": np.zeros((3, 4), dtype=bool)}),
        ("Z", {"Z": GOOD_Z.T}),
        ("Z", {"Z": 1e80 * GOOD_Z}),
        ("X", {"X": GOOD_X[None]}),
    ],
)
def test_solve_general_names_the_argument(name, changes):
    good = {
        "X": GOOD_X,
        "Z": GOOD_Z,
        "selected": np.eye(3, 4, dtype=bool),
        "attention": np.full((3, 4), 0.25),
    }
    svm.solve_general(**good)
    with pytest.raises(ArgumentError) as caught:
        svm.solve_general(**good | changes)
    assert caught.value.argument == name


@pytest.mark.parametrize("p", [1.0, 0.5, np.inf, np.nan, "2", None])
def test_solve_lp_wants_p_above_one(p):
    with pytest.raises(ArgumentError) as caught:
        svm.solve_lp(**arguments(), p=p)
    assert caught.value.argument == "p"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("norm", {"norm": "l2"}),
        ("norm", {"norm": 0.5}),
        ("form", {"form": "rows"}),
        ("X", {"X": GOOD_X[0]}),
        ("Z", {"Z": GOOD_Z[0]}),
        ("selected", {"selected": [9, 9, 9]}),
        ("mask", {"mask": np.ones(3, dtype=bool)}),
    ],
)
def test_formulations_name_the_argument(name, changes):
    with pytest.raises(ArgumentError) as caught:
        formulations.att_svm(**arguments(**changes))
    assert caught.value.argument == name
