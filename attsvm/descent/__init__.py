"""Gradient descent on W or (K, Q), thousands of instances at once, and the regularisation path."""

from attsvm.descent._arithmetic import EPSILON
from attsvm.descent._path import RegularizationPath, regularization_path
from attsvm.descent._records import Snapshot, Trajectory, at, every
from attsvm.descent._rules import Normalized, Plain, Polyak, Rule
from attsvm.descent._start import State, random_weights
from attsvm.descent._train import DivergedError, train

__all__ = [
    "EPSILON",
    "DivergedError",
    "Normalized",
    "Plain",
    "Polyak",
    "RegularizationPath",
    "Rule",
    "Snapshot",
    "State",
    "Trajectory",
    "at",
    "every",
    "random_weights",
    "regularization_path",
    "train",
]
