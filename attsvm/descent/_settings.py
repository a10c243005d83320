"""What a run has decided before its first step, made from the arguments of `train`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attsvm import _checks
from attsvm.descent import _rules
from attsvm.descent._arithmetic import EPSILON
from attsvm.errors import ArgumentError
from attsvm.heads import LinearHead
from attsvm.problem import AttentionProblem

__all__ = ["Settings", "settle"]


@dataclass(frozen=True, eq=False)
class Settings:
    """What one run has decided, the same for all chunks."""

    exact: bool
    rule: Any
    length: Callable[[int], float]
    log_ridge: float
    target: np.ndarray | None


def settle(
    problem: AttentionProblem,
    parameterization: str,
    step: Any,
    gradient: str,
    rule: Any,
    ridge: Any,
    log_ridge: Any,
    target: Any,
) -> Settings:
    """Check and complete the arguments that say how to step."""
    length = _schedule(step, decaying=isinstance(rule, str) and rule == "decaying")
    exact = _checks.choice("gradient", gradient, ("exact", "published")) == "exact"
    if not isinstance(rule, _rules.Rule) or isinstance(rule, str):
        _checks.choice("rule", rule, ("normalized", "decaying", "plain", "polyak"))
        epsilon = 0.0 if exact else EPSILON
        rule = {
            "normalized": _rules.Normalized(epsilon),
            "decaying": _rules.Normalized(epsilon),
            "plain": _rules.Plain(),
            "polyak": _rules.Polyak(),
        }[rule]

    if ridge is not None and log_ridge is not None:
        raise ArgumentError("log_ridge", "ridge or log_ridge", "both")
    if ridge is None and log_ridge is None:
        ridge = EPSILON if parameterization == "KQ" and not rule.needs_gap else 0.0
    if log_ridge is None:
        ridge = _checks.number("ridge", ridge, at_least=0.0)
        log_ridge = -np.inf if ridge == 0 else float(np.log(ridge))
    else:
        log_ridge = _checks.number("log_ridge", log_ridge)
    optimum = None
    if rule.needs_gap:
        if log_ridge > -np.inf:
            raise ArgumentError("ridge", "0 for a rule that needs the optimal loss", "a ridge")
        optimum = _optimum(problem, exact, target)
    elif target is not None:
        raise ArgumentError("target", "None unless the rule is Polyak's", repr(target))
    return Settings(exact, rule, length, log_ridge, optimum)


def _schedule(step: Any, decaying: bool) -> Callable[[int], float]:
    """η_k as a function of the iteration k = 0, 1, …."""
    size = None if callable(step) else _checks.positive("step", step)

    def length(iteration: int) -> float:
        eta = size
        if eta is None:
            eta = _checks.number(f"step({iteration})", step(iteration), at_least=0.0)
        return eta / math.sqrt(iteration + 1.0) if decaying else eta

    return length


def _optimum(problem: AttentionProblem, exact: bool, target: Any) -> np.ndarray:
    """What the arithmetic needs to measure the loss above its target, instances flattened.

    Best scores (B, n) where the gap is computed without cancellation, else L* (B,).
    """
    count = int(np.prod(problem.batch_shape))
    if target is not None:
        if isinstance(problem.head, LinearHead) and exact:
            raise ArgumentError(
                "target", "None: for the linear head L* is known exactly", repr(target)
            )
        value = np.asarray(_checks.array("target", target))
        if value.ndim and value.shape != problem.batch_shape:
            raise ArgumentError(
                "target", f"a number or shape {problem.batch_shape}", f"shape {value.shape}"
            )
        return np.broadcast_to(value, problem.batch_shape).reshape(count).copy()
    if not isinstance(problem.head, LinearHead):
        raise ArgumentError(
            "target", "the optimal loss L* (known only for the linear head)", "none"
        )
    best = problem.scores().max(-1).reshape(count, problem.n)
    return best if exact else np.logaddexp(0.0, -best).mean(-1)
