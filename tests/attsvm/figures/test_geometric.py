"""Geometric means for logarithmic axes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from attsvm import figures
from attsvm.errors import ArgumentError


def test_geometric_mean_and_interval() -> None:
    table = pd.DataFrame({"k": [1, 1, 1, 2, 2], "e": [1e-4, 1e-2, 1.0, 3.0, 3.0]})
    found = figures.summarise(table, ["k"], "e", geometric=True).set_index("k")
    assert found["mean"][1] == pytest.approx(1e-2)
    factor = np.exp(1.96 * np.log(100.0) / np.sqrt(3))
    assert found["high"][1] == pytest.approx(1e-2 * factor)
    assert found["low"][1] == pytest.approx(1e-2 / factor)
    assert found.loc[2, ["mean", "low", "high"]].tolist() == pytest.approx([3.0, 3.0, 3.0])
    # The default is untouched, and so is the caller's table.
    assert figures.summarise(table, ["k"], "e")["mean"][0] == pytest.approx(table["e"][:3].mean())


def test_no_logarithm_of_what_is_not_positive() -> None:
    table = pd.DataFrame({"k": [1, 1], "e": [0.0, 1.0]})
    with pytest.raises(ArgumentError, match="positive"):
        figures.summarise(table, ["k"], "e", geometric=True)
