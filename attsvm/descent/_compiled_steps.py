"""Steps of gradient descent by the compiled kernel, for the heads and rules that it knows."""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import threading

import numpy as np
import torch

from attsvm._typing import FloatArray
from attsvm.descent import _arithmetic, _rules
from attsvm.descent._layer import Weights
from attsvm.descent._settings import Settings
from attsvm.heads import LinearHead, QuadraticHead, ReLUHead
from attsvm.problem import AttentionProblem

_KINDS = {LinearHead: 0, ReLUHead: 1, QuadraticHead: 2}


def obstacle(settings: Settings, problem: AttentionProblem, device: torch.device) -> str | None:
    """Why the kernel cannot take these steps; None if it can."""
    if importlib.util.find_spec("numba") is None:
        return "numba is not installed"
    if device.type != "cpu":
        return f"it runs on the processor, not on {device}"
    if type(problem.head) not in _KINDS:
        return f"it does not know the head {type(problem.head).__name__}"
    if type(settings.rule) not in (_rules.Normalized, _rules.Plain):
        return f"it does not know the rule {type(settings.rule).__name__}"
    return None


class CompiledSteps:
    """Takes steps on a chunk of instances, eight side by side, many steps in one call."""

    def __init__(self, settings: Settings, problem: AttentionProblem) -> None:
        # Imported here: whoever needs no kernel does not wait for the compiler.
        from attsvm.descent import _kernel

        self._kernel, head, none = _kernel, problem.head, np.zeros((len(problem), 0, problem.T))
        rule, linear = settings.rule, isinstance(head, LinearHead)
        assert isinstance(head, LinearHead | ReLUHead | QuadraticHead)  # as `obstacle` found
        columns: FloatArray = head.V if isinstance(head, ReLUHead) else head.v[..., None]
        columns = np.broadcast_to(columns, (len(problem), *columns.shape[-2:]))
        scores = hidden = none
        if linear:
            gamma = problem.scores()
            scores = np.where(np.isfinite(gamma), gamma, 0.0)
        if problem.mask is not None:
            hidden = np.where(problem.mask, 0.0, -np.inf)
        self._constants = (
            settings.logit_gradient is _arithmetic.exact,
            _KINDS[type(head)],
            float(getattr(head, "ridge", 0.0)),
            settings.log_ridge + math.log(2.0),
            rule.epsilon if isinstance(rule, _rules.Normalized) else 0.0,
            isinstance(rule, _rules.Plain),
        )
        data = (problem.tokens, problem.queries, problem.labels, columns, scores, hidden)
        self._data = tuple(map(_kernel.lanes, data))

    def take(self, weights: Weights, sizes: list[float]) -> None:
        """Steps of the given sizes η; the weights change in place."""
        arrays: list[FloatArray] = [self._kernel.lanes(a.numpy()) for a in weights.arrays]
        if len(arrays) == 1:
            blocks, d, _, lanes = arrays[0].shape
            arrays.append(np.zeros((blocks, d, 0, lanes)))
        with _patience():
            self._kernel.advance(*self._constants, np.array(sizes), *self._data, *arrays)
        for tensor, array in zip(weights.arrays, arrays, strict=False):
            tensor.copy_(torch.from_numpy(self._kernel.unlanes(array, len(tensor))))


class _patience:
    """Says what takes so long when the kernel is compiled, once on a machine."""

    done = False

    def __enter__(self) -> None:
        text = "attsvm: compiling the kernel of descent, once on this machine (half a minute)"
        self._timer = threading.Timer(3.0, lambda: print(text, file=sys.stderr, flush=True))
        if not (_patience.done or os.environ.get("ATTSVM_QUIET")):
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        _patience.done = True
