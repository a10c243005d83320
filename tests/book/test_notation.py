"""The page of notation: each array is there, and has the shape that the page gives it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attsvm import datasets, descent, metrics, selection, svm

FILE = Path(__file__).parents[2] / "book" / "_data" / "notation.toml"
SYMBOLS: list[dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))["symbol"]
SIZES = {"n": 3, "T": 4, "d": 6, "m": 6, "records": 3, "radii": 2}
SEEDS = range(5)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the page calls `problem`, `run` and so on."""
    n, T, d = (SIZES[key] for key in ("n", "T", "d"))
    problem = datasets.random_problems(SEEDS, n=n, T=T, d=d)
    keep = ("W", "K", "Q", "attention", "logits")
    run = descent.train(
        problem, "KQ", iterations=20, seeds=SEEDS, record=descent.every(10), keep=keep
    )
    one = problem.instance(0)
    X, Z, tokens = one.tokens, one.queries, selection.optimal_tokens(one)
    selected = np.arange(T) < 2
    attention = np.where(selected, 0.5, 0.0) * np.ones((n, 1))
    return {
        "problem": problem,
        "causal": datasets.sequence_problems(SEEDS, n=n, T=T, d=d, causal=True),
        "run": run,
        "solution": svm.solve(X, Z, tokens),
        "nuclear": svm.solve(X, Z, tokens, norm="nuc"),
        "general": svm.solve_general(X, Z, np.tile(selected, (n, 1)), attention),
        "path": descent.regularization_path(one, [1.0, 2.0]),
        "metrics": metrics,
        "selection": selection,
    }


def shape(text: str) -> tuple[int, ...]:
    """``(…, n, d)`` in numbers; the batch has one axis."""
    parts = [part.strip() for part in text.strip("()").split(",") if part.strip()]
    return tuple(len(SEEDS) if part == "…" else eval(part, {}, dict(SIZES)) for part in parts)


@pytest.mark.parametrize("symbol", [s for s in SYMBOLS if "code" in s], ids=lambda s: s["id"])
def test_arrays_have_the_shape_that_is_written(
    symbol: dict[str, Any], names: dict[str, Any]
) -> None:
    for expression in symbol["code"]:
        value = np.asarray(eval(expression, {}, dict(names)))
        assert value.shape == shape(symbol.get("shape", "()")), expression
        if value.shape == ():  # a size: the letter itself says which
            assert value == SIZES[symbol["symbol"].strip("$")]


def test_every_symbol_is_written_once() -> None:
    assert len(SYMBOLS) > 20
    for key in ("id", "symbol", "meaning"):
        values = [symbol[key] for symbol in SYMBOLS]
        assert len(set(values)) == len(values), key
