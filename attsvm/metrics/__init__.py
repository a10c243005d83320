"""What the book measures: correlation of directions, numerical rank, means with intervals."""

from attsvm.metrics._directions import NumericalRank, correlation, numerical_rank, stable_rank
from attsvm.metrics._estimates import Estimate, mean_estimate, share_estimate, wilson_interval
from attsvm.metrics._log_gap import log_gap

__all__ = [
    "Estimate",
    "NumericalRank",
    "correlation",
    "log_gap",
    "mean_estimate",
    "numerical_rank",
    "share_estimate",
    "stable_rank",
    "wilson_interval",
]
