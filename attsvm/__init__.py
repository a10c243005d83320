"""The executable companion to "Transformers as Support Vector Machines" (arXiv 2308.16898).

A *problem* (tokens, queries, labels, head) goes two ways and meets again: `descent` trains the
attention weights, `selection` reads off the tokens they keep, `svm` solves the hard-margin program
for those tokens, and `metrics` compares the directions.  Modules are loaded when first used: some
of them import torch, which takes seconds.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULES = (
    "chunks",
    "claims",
    "datasets",
    "descent",
    "errors",
    "experiments",
    "figures",
    "formulations",
    "heads",
    "landscape",
    "metrics",
    "problem",
    "published",
    "records",
    "selection",
    "simplex",
    "svm",
)

__all__ = ["AttentionProblem", "__version__", *_MODULES]

if TYPE_CHECKING:
    from attsvm import chunks as chunks
    from attsvm import claims as claims
    from attsvm import datasets as datasets
    from attsvm import descent as descent
    from attsvm import errors as errors
    from attsvm import experiments as experiments
    from attsvm import figures as figures
    from attsvm import formulations as formulations
    from attsvm import heads as heads
    from attsvm import landscape as landscape
    from attsvm import metrics as metrics
    from attsvm import problem as problem
    from attsvm import published as published
    from attsvm import records as records
    from attsvm import selection as selection
    from attsvm import simplex as simplex
    from attsvm import svm as svm
    from attsvm.problem import AttentionProblem


def __getattr__(name: str) -> Any:
    if name == "AttentionProblem":
        return importlib.import_module("attsvm.problem").AttentionProblem
    if name in _MODULES:
        return importlib.import_module(f"attsvm.{name}")
    raise AttributeError(f"module 'attsvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
