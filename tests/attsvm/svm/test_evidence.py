"""Evidence: gaps and tolerances of solutions as columns of a table."""

import numpy as np

from attsvm import datasets, selection, svm

ACTIVE_SET = "attsvm.svm, active set"


def solved(norm="fro", tolerance=None):
    problems = datasets.random_problems(range(6), n=3, T=4, d=2)
    chosen = np.zeros((6, 3), dtype=int)
    return svm.solve_many(problems.tokens, problems.queries, chosen, norm=norm, tolerance=tolerance)


def test_columns_are_the_gaps_and_tolerances_by_program():
    frobenius, nuclear = solved(), solved("nuc", svm.Tolerance(nuclear_gap=1e-7))
    columns = svm.evidence(frobenius, nuclear)
    names = (f"Frobenius: {ACTIVE_SET}", "nuclear: attsvm.svm, interior point, polished")
    assert set(columns) == {
        f"{word}, {name}" for word in ("gap", "tolerance of the gap") for name in names
    }
    for group, name, tolerance in zip((frobenius, nuclear), names, (1e-9, 1e-7), strict=True):
        infeasible = np.array([s.status is svm.Status.INFEASIBLE for s in group])
        assert infeasible.any() and not infeasible.all()
        gaps = columns[f"gap, {name}"]
        np.testing.assert_array_equal(gaps, [s.gap for s in group])
        np.testing.assert_array_equal(np.isnan(gaps), infeasible)
        np.testing.assert_array_equal(columns[f"tolerance of the gap, {name}"], tolerance)


def test_the_largest_gap_counts_where_a_program_is_solved_twice():
    once, twice = solved(), solved()
    for k, solution in enumerate(twice):
        solution.gap = 1e-10 * k
    gaps = svm.evidence(once, twice)[f"gap, Frobenius: {ACTIVE_SET}"]
    np.testing.assert_array_equal(gaps, np.fmax([s.gap for s in once], [s.gap for s in twice]))


def test_both_parts_of_gen_svm_count():
    problem = datasets.random_problem(0, n=2, T=3, d=6)
    sets = np.array([[True, True, False], [True, False, False]])
    attention = np.array([[0.6, 0.4, 0.0], [1.0, 0.0, 0.0]])
    general = svm.solve_general(problem.tokens, problem.queries, sets, attention)
    (gap,) = svm.evidence([general])[f"gap, Gen-SVM, Frobenius: {ACTIVE_SET}"]
    assert gap == max(general.gap, general.finite.gap)
    solvers, tolerances = svm.passport(solutions=[general])
    assert solvers == {"Gen-SVM, Frobenius": ACTIVE_SET}
    assert tolerances["relative gap, Gen-SVM, Frobenius"] == svm.Tolerance().gap


def test_without_solutions_there_is_nothing_to_tell():
    assert svm.evidence() == {}
    assert svm.passport() == ({}, {})


def test_an_instance_without_a_program_has_no_gap():
    frobenius = solved()
    some = [s if k % 2 else None for k, s in enumerate(frobenius)]
    gaps = svm.evidence(some)[f"gap, Frobenius: {ACTIVE_SET}"]
    np.testing.assert_array_equal(gaps, [s.gap if s else np.nan for s in some])
    expected = [str(s.status) if s and not s.solved else "kept" for s in some]
    assert selection.fates(some) == expected
    assert svm.evidence([None] * 6) == {}
