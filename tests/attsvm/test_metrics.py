"""Correlation, ranks, intervals: closed forms, properties, coverage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attsvm import metrics

matrices = arrays(np.float64, (3, 4), elements=st.floats(-10, 10, width=32)).filter(
    lambda A: np.linalg.norm(A) > 1e-3
)


@given(matrices, matrices, st.floats(1e-150, 1e150), st.floats(1e-150, 1e150))
def test_correlation_is_symmetric_and_blind_to_scale(A, B, a, b):
    value = metrics.correlation(A, B)
    assert -1 <= value <= 1
    assert metrics.correlation(B, A) == pytest.approx(value, abs=1e-12)
    assert metrics.correlation(a * A, b * B) == pytest.approx(value, abs=1e-9)
    assert metrics.correlation(A, A) == pytest.approx(1, abs=1e-12)
    assert metrics.correlation(A, -A) == pytest.approx(-1, abs=1e-12)


def test_correlation_broadcasts_and_knows_no_direction_of_zero():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(7, 5, 3, 3)), rng.normal(size=(5, 3, 3))
    got = metrics.correlation(A, B)
    assert got.shape == (7, 5)
    expected = (A[2, 4] * B[4]).sum() / np.linalg.norm(A[2, 4]) / np.linalg.norm(B[4])
    assert got[2, 4] == pytest.approx(expected, rel=1e-13)
    assert np.isnan(metrics.correlation(np.zeros((2, 2)), np.eye(2)))


def test_numerical_rank_of_a_known_spectrum():
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.normal(size=(5, 5)))[0] for _ in range(2))
    W = U @ np.diag([3.0, 1.0, 1e-5, 1e-12, 0.0]) @ V.T
    found = metrics.numerical_rank(W, 1e-7)
    assert found.rank == 3
    assert found.gap == pytest.approx(1e7, rel=1e-2)
    assert metrics.numerical_rank(W, 1e-4).rank == 2
    assert metrics.numerical_rank(1e-6 * W, 1e-7, relative=False).rank == 2
    assert metrics.numerical_rank(np.zeros((3, 3))).rank == 0


@given(matrices)
def test_stable_rank_lies_between_one_and_the_rank(W):
    value = float(metrics.stable_rank(W))
    assert 1 - 1e-9 <= value <= np.linalg.matrix_rank(W) + 1e-6


def test_mean_estimate_by_hand():
    found = metrics.mean_estimate([1.0, 2.0, 3.0, 4.0])
    sd = np.sqrt(5 / 3)
    assert found.value == 2.5
    assert found.halfwidth == pytest.approx(1.959964 * sd / 2, rel=1e-6)
    assert found.standard_error == pytest.approx(sd / 2, rel=1e-12)
    assert str(found) == "2.5 ± 1.3 (n = 4)"
    assert metrics.mean_estimate([7.0]).halfwidth == 0


def test_intervals_cover_as_often_as_they_say():
    rng = np.random.default_rng(0)
    means = [metrics.mean_estimate(rng.normal(size=100)) for _ in range(2000)]
    assert 0.93 < np.mean([e.low <= 0 <= e.high for e in means]) < 0.97
    for p in (0.02, 0.5):
        shares = [metrics.share_estimate(rng.random(100) < p) for _ in range(2000)]
        assert 0.92 < np.mean([e.low <= p <= e.high for e in shares]) < 0.99


def test_wilson_at_the_ends():
    every = metrics.share_estimate(np.ones(20, dtype=bool))
    assert (every.value, every.high) == (1.0, 1.0)
    assert 0.8 < every.low < 0.9
