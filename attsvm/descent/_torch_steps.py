"""Steps of gradient descent as torch operations: any head, any rule, any device."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from attsvm.descent._layer import Layer, Weights
from attsvm.descent._settings import Settings


class TorchSteps:
    """Takes steps on a chunk of instances, all of them in one operation after the other."""

    def __init__(self, settings: Settings, layer: Layer, optimum: Tensor | None) -> None:
        self._settings, self._layer, self._optimum = settings, layer, optimum

    def take(self, weights: Weights, sizes: list[float]) -> None:
        """Steps of the given sizes η; the weights change in place."""
        settings = self._settings
        for size in sizes:
            logits = weights.logits(self._layer)
            inner = settings.logit_gradient(self._layer, logits, self._optimum)
            gradients = weights.gradients(self._layer, inner.p)
            log_scale = inner.log_scale
            if settings.log_ridge > -np.inf:
                log_scale = _add_ridge(gradients, weights.arrays, log_scale, settings.log_ridge)
            settings.rule.apply(size, weights.arrays, gradients, log_scale, inner.gap)


def _add_ridge(
    gradients: list[Tensor], arrays: list[Tensor], log_scale: Tensor, log_ridge: float
) -> Tensor:
    """Add the ridge's gradient 2λW to e^c g, in place, on the larger of the two scales.

    Answers the new log scale.  Neither exponential can overflow; what underflows is below 1e-308
    of the other term.
    """
    log_twice = log_ridge + math.log(2.0)
    common = log_scale.clamp(min=log_twice)
    own = (log_scale - common).exp_()[:, None, None]
    penalty = (log_twice - common).exp_()[:, None, None]
    for gradient, array in zip(gradients, arrays, strict=True):
        gradient.mul_(own).addcmul_(array, penalty)
    return common
