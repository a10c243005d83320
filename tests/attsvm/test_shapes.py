"""Shapes in annotations are checked under pytest, and only they."""

from __future__ import annotations

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from attsvm import _linalg


def test_a_wrong_shape_fails_under_pytest():
    assert _linalg.step_to_zero(np.ones(2), -np.ones(2)) == 1.0
    with pytest.raises(TypeCheckError, match="direction"):
        _linalg.step_to_zero(np.ones(2), np.ones(3))
