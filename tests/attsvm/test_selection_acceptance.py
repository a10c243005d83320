"""The acceptance rules of the experiment on several selected tokens, each on a case by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from attsvm import AttentionProblem, selection, svm
from attsvm.heads import LinearHead

# One instance a row, two sequences of three tokens each.
CASES = {
    "kept": ([1, -1], [[0.7, 0.3, 1e-9], [1.0, 0.0, 0.0]]),
    "no label −1": ([1, 1], [[0.7, 0.3, 1e-9], [1.0, 1e-5, 0.0]]),
    "grey zone": ([1, -1], [[0.7, 0.3, 0.0], [1.0, 1e-5, 0.0]]),
    "finite solution": ([-1, -1], [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2]]),
}


def problems(labels):
    labels = np.array(labels, dtype=float)
    rng = np.random.default_rng(0)
    tokens = rng.normal(size=(*labels.shape, 3, 4))
    return AttentionProblem(tokens, tokens[..., 0, :], labels, LinearHead(np.ones(4)))


def decide(attention, labels, **options):
    return selection.acceptance(problems(labels), attention, **options)


LABELS = [labels for labels, _ in CASES.values()]
ATTENTION = [attention for _, attention in CASES.values()]


def test_each_rule_names_its_case():
    assert decide(ATTENTION, LABELS) == list(CASES)
    assert tuple(CASES)[1:] == selection.ACCEPTANCE_RULES


def test_the_first_rule_in_order_gives_the_fate():
    assert decide([ATTENTION[2]], [[1, 1]]) == ["no label −1"]
    assert decide([ATTENTION[2]], [[1, 1]], rules=("grey zone", "no label −1")) == ["grey zone"]


def test_rules_can_be_left_out():
    assert decide(ATTENTION, LABELS, rules=()) == ["kept"] * 4
    assert decide(ATTENTION, LABELS, rules=("finite solution",)) == ["kept"] * 3 + [
        "finite solution"
    ]


def test_ends_of_the_grey_zone():
    edges = [[[1e-6, 1e-3, 1.0], [1.0, 0.0, 0.0]]]
    assert decide(edges, [[1, -1]]) == ["grey zone"]  # 10⁻³ itself is not above 10⁻³
    assert decide(edges, [[1, -1]], selected=9e-4) == ["kept"]
    assert decide(edges, [[1, -1]], selected=9e-4, dropped=9e-7) == ["grey zone"]
    assert decide(edges, [[1, -1]], selected=1e-3, dropped=1e-3) == ["kept"]


def test_first_fate_joins_lists():
    assert selection.first_fate(["kept", "a", "kept"], ["b", "c", "kept"]) == ["b", "a", "kept"]


def test_the_finite_part_counts_too():
    plain = SimpleNamespace(status=svm.Status.SOLVED, solved=True)
    bad = SimpleNamespace(status=svm.Status.INFEASIBLE, solved=False)
    good = SimpleNamespace(status=svm.Status.SOLVED, solved=True, finite=plain)
    torn = SimpleNamespace(status=svm.Status.SOLVED, solved=True, finite=bad)
    assert selection.fates([good, torn, good], [plain] * 3) == ["kept", "infeasible", "kept"]
