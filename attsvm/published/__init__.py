"""The authors' numbers, measured by running their public code: what "as published" is held against.

The ``README.md`` beside the files says how they were measured.
"""

from __future__ import annotations

import importlib.resources
import json
from typing import TYPE_CHECKING, Any

from attsvm import _checks

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["table", "trajectories"]

_TABLES = ("local_convergence", "multi_token", "svm_rank")


def table(name: str) -> pd.DataFrame:
    """One of the published tables.

    Parameters
    ----------
    name
        "local_convergence" (Section 5), "multi_token" (Section 6) or "svm_rank" (Section 2).

    Returns
    -------
    DataFrame

    Raises
    ------
    ArgumentError
        If there is no table of that name.
    """
    import pandas as pd

    _checks.choice("name", name, _TABLES)
    with importlib.resources.files(__name__).joinpath(f"{name}.csv").open("r") as file:
        return pd.read_csv(file)


def trajectories() -> dict[str, Any]:
    """Data, solutions and the W run of the two figures in the plane, by "A1" and "A2".

    "A1" has five tokens in a sequence, "A2" three (`datasets.planar_problem`).
    """
    return json.loads(importlib.resources.files(__name__).joinpath("trajectories.json").read_text())
