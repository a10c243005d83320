"""How a run steps, made from the arguments of `train` before its first step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from torch import Tensor

from attsvm import _checks
from attsvm._typing import ArrayLike, FloatArray
from attsvm.descent import _arithmetic, _rules
from attsvm.descent._layer import Layer
from attsvm.errors import ArgumentError
from attsvm.heads import LinearHead
from attsvm.problem import AttentionProblem

StepSize: TypeAlias = float | Callable[[int], float]


@dataclass(frozen=True, eq=False)
class Settings:
    """Arithmetic and step rule of one run, the same for all chunks."""

    logit_gradient: Callable[[Layer, Tensor, Tensor | None], _arithmetic.LogitGradient]
    rule: _rules.Rule
    length: Callable[[int], float]  # η_k
    log_ridge: float  # log λ, −∞ without a ridge
    target: FloatArray | None  # what `logit_gradient` needs for the loss above it, (B, n) or (B,)

    @classmethod
    def of(
        cls,
        problem: AttentionProblem,
        parameterization: str,
        step: StepSize,
        gradient: str,
        rule: str | _rules.Rule,
        ridge: float | None,
        log_ridge: float | None,
        target: ArrayLike | None,
    ) -> Settings:
        """Check and complete the arguments that say how to step."""
        length = _schedule(step, decaying=isinstance(rule, str) and rule == "decaying")
        exact = _checks.choice("gradient", gradient, ("exact", "published")) == "exact"
        if not isinstance(rule, _rules.Rule):
            normalized = _rules.Normalized(0.0 if exact else _arithmetic.EPSILON)
            known: dict[str, _rules.Rule] = {
                "normalized": normalized,
                "decaying": normalized,
                "plain": _rules.Plain(),
                "polyak": _rules.Polyak(),
            }
            rule = known[_checks.choice("rule", rule, known)]
        log_ridge = _log_ridge(ridge, log_ridge, parameterization == "KQ" and not rule.needs_gap)
        optimum = None
        if rule.needs_gap:
            if log_ridge > -np.inf:
                raise ArgumentError("ridge", "0 for a rule that needs the optimal loss", "a ridge")
            optimum = _optimum(problem, exact, target)
        elif target is not None:
            raise ArgumentError("target", "None unless the rule is Polyak's", repr(target))
        arithmetic = _arithmetic.exact if exact else _arithmetic.published
        return cls(arithmetic, rule, length, log_ridge, optimum)


def _schedule(step: StepSize, decaying: bool) -> Callable[[int], float]:
    """η_k as a function of the iteration k = 0, 1, …."""
    if not callable(step):
        step = _checks.positive("step", step)

    def length(k: int) -> float:
        size = _checks.number(f"step({k})", step(k), at_least=0.0) if callable(step) else step
        return size / math.sqrt(k + 1.0) if decaying else size

    return length


def _log_ridge(ridge: float | None, log_ridge: float | None, authors: bool) -> float:
    """log λ from whichever was given; `authors`: theirs is the default, else none."""
    if ridge is not None and log_ridge is not None:
        raise ArgumentError("log_ridge", "ridge or log_ridge", "both")
    if log_ridge is not None:
        return _checks.number("log_ridge", log_ridge)
    if ridge is None:
        ridge = _arithmetic.EPSILON if authors else 0.0
    ridge = _checks.number("ridge", ridge, at_least=0.0)
    return -np.inf if ridge == 0 else float(np.log(ridge))


def _optimum(problem: AttentionProblem, exact: bool, target: ArrayLike | None) -> FloatArray:
    """What the arithmetic needs to measure the loss above its target, instances flattened.

    Best scores (B, n) where the gap is computed without cancellation, else L* (B,).
    """
    linear, batch = isinstance(problem.head, LinearHead), problem.batch_shape
    if target is None:
        if not linear:
            known = "the optimal loss L* (known only for the linear head)"
            raise ArgumentError("target", known, "none")
        best = problem.scores().max(-1).reshape(-1, problem.n)
        return best if exact else np.logaddexp(0.0, -best).mean(-1)
    if linear and exact:
        known = "None: for the linear head L* is known exactly"
        raise ArgumentError("target", known, repr(target))
    value = _checks.array("target", target)
    if value.ndim and value.shape != batch:
        raise ArgumentError("target", f"a number or shape {batch}", f"shape {value.shape}")
    return np.broadcast_to(value, batch).reshape(-1).copy()
