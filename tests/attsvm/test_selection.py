"""Selection and the ledger: by definition, on instances small enough to check by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from attsvm import AttentionProblem, datasets, selection, svm
from attsvm.heads import LinearHead
from attsvm.problem import stack


def test_optimal_tokens_maximise_the_score():
    problem = datasets.random_problem(0, n=4, T=5, d=6)
    best = selection.optimal_tokens(problem)
    for i, t in enumerate(best):
        values = problem.labels[i] * problem.tokens[i] @ problem.head.v
        assert values[t] == values.max()


def test_a_hidden_token_is_never_optimal():
    problem = datasets.random_problem(0, n=4, T=5, d=6)
    best = selection.optimal_tokens(problem)
    mask = np.ones((4, 5), dtype=bool)
    mask[np.arange(4), best] = False
    hidden = AttentionProblem(problem.tokens, problem.queries, problem.labels, problem.head, mask)
    assert (selection.optimal_tokens(hidden) != best).all()


def test_selected_tokens_and_sets():
    attention = np.array([[0.2, 0.7, 0.1], [0.9995, 0.0005, 0.0]])
    assert selection.selected_tokens(attention).tolist() == [1, 0]
    assert selection.selected_sets(attention).tolist() == [[True, True, True], [True, False, False]]
    assert selection.selected_sets(attention, 0.5).sum() == 2


def one_sequence(scores):
    """Three tokens on a line, query 1: the outer two pull apart, the scores are as given."""
    tokens = np.array([[[1.0, scores[0]], [0.0, scores[1]], [-1.0, scores[2]]]])
    return AttentionProblem(tokens, np.array([[1.0, 0.0]]), np.ones(1), LinearHead([0.0, 1.0]))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [((3.0, 2.0, 1.0), "global"), ((2.0, 1.0, 3.0), "local"), ((1.0, 2.0, 3.0), "not local")],
)
def test_convergence_types_by_hand(scores, expected):
    # Say the middle token is the support token; the definitions only look at support and scores.
    problem = one_sequence(scores)
    tokens = np.array([0])
    support = np.array([[False, True, False]])
    local = selection.locally_optimal(problem, tokens, support)
    assert local.tolist() == [scores[0] > scores[1]]
    solved = SimpleNamespace(solved=True, support=lambda: support)
    kinds = selection.convergence_types(stack([problem]), tokens[None], [solved])
    assert kinds.tolist() == [expected]


def test_types_of_real_solutions_agree_with_the_definition():
    problems = datasets.random_problems(range(30), n=3, T=4, d=3)
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 4, size=(30, 3))
    solutions = svm.solve_many(problems.tokens, problems.queries, tokens)
    kinds = selection.convergence_types(problems, tokens, solutions)
    assert {"local", "not local", "unsolved"} <= set(kinds) | {"unsolved"}
    for i, (kind, solution) in enumerate(zip(kinds, solutions, strict=True)):
        if solution.status is not svm.Status.SOLVED:
            assert kind == "unsolved"
            continue
        problem = problems.instance(i)
        gamma, margins = problem.scores(), solution.margins()
        outscored = all(
            gamma[s, tokens[i, s]] > gamma[s, t]
            for s in range(3)
            for t in range(4)
            if t != tokens[i, s] and margins[s, t] < 1 + 1e-7
        )
        optimal = (tokens[i] == selection.optimal_tokens(problem)).all()
        assert kind == ("global" if optimal else "local" if outscored else "not local")


def test_optimal_tokens_are_locally_optimal():
    problems = datasets.random_problems(range(20), n=3, T=4, d=4)
    optimal = selection.optimal_tokens(problems)
    solutions = svm.solve_many(problems.tokens, problems.queries, optimal)
    solved = [s.status is svm.Status.SOLVED for s in solutions]
    assert any(solved)
    support = np.stack([s.support() for s in solutions])
    assert selection.locally_optimal(problems, optimal, support)[solved].all()


def test_fates_name_the_first_failure():
    problems = datasets.random_problems(range(12), n=6, T=4, d=3)
    found = svm.solve_many(problems.tokens, problems.queries, selection.optimal_tokens(problems))
    words = selection.fates(found, found)
    assert set(words) == {"kept", "infeasible"}
    for word, solution in zip(words, found, strict=True):
        assert (word == "kept") == (solution.status is svm.Status.SOLVED)


def test_ledger_counts():
    ledger = selection.Ledger()
    ledger.add("run", [0, 1, 2, 3], ["kept", "kept", "infeasible", "kept"])
    ledger.add("run", [3], ["kept"])
    assert ledger.counts() == {"run": {"kept": 3, "infeasible": 1}}
    assert ledger.as_record() == [
        {"label": "run", "drawn": 4, "fates": {"kept": 3, "infeasible": 1}}
    ]
    assert "4 drawn" in str(ledger)


def test_ledgers_combine():
    one, two = selection.Ledger(), selection.Ledger()
    one.add("a", [0], ["kept"])
    two.add("a", [1], ["infeasible"])
    two.add("b", [0], ["kept"])
    named = selection.Ledger.combined({"first": one, "second": two})
    assert list(named.counts()) == ["first", "second: a", "second: b"]


def test_a_ledger_of_given_instances():
    ledger = selection.Ledger.kept(["W", "KQ"], count=3)
    assert ledger.counts() == {"W": {"kept": 3}, "KQ": {"kept": 3}}
