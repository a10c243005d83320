"""A curve runs along its axis, whatever the order of its rows."""

from __future__ import annotations

import pandas as pd
import pytest

from attsvm import figures


@pytest.mark.parametrize("published", [False, True])
def test_points_are_joined_in_the_order_of_the_axis(published: bool) -> None:
    # A size that is feasible for late seeds only comes last in a table of kept instances.
    table = pd.DataFrame({"d": [5, 5, 10, 10, 3, 3], "rank": [2.0, 4.0, 4.0, 6.0, 1.0, 1.0]})
    summary = figures.summarise(table, ["d"], "rank")
    assert summary["d"].tolist() == [5, 10, 3]
    _, ax = figures.grid()
    figures.band(ax, summary, "d", label="rank", colour="blue", published=published)
    (line,) = ax.lines
    assert line.get_xdata().tolist() == [3, 5, 10]
    assert line.get_ydata().tolist() == [1.0, 3.0, 5.0]
    assert summary["d"].tolist() == [5, 10, 3]  # the caller's table is left alone
